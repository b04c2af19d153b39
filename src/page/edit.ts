const SET_BY_SERVER = [
  ...['id', 'tenant_id', 'type', 'keys', 'key'],
  ...['created_by', 'created_at', 'modified_by', 'modified_at'],
]

/**
 * The attributes of an application that a person may edit: all except {@link SET_BY_SERVER}. An update removes the
 * attributes that the request does not contain, so an edit would remove each attribute that this function leaves out.
 */
export function editable(application: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(application).filter(([name]) => !SET_BY_SERVER.includes(name)))
}

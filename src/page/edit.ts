const SET_BY_SERVER = [
  ...['id', 'tenant_id', 'type', 'keys', 'key'],
  ...['created_by', 'created_at', 'modified_by', 'modified_at'],
]

/**
 * Returns the attributes that a person may edit. An update removes all attributes that are missing in the request, so
 * only {@link SET_BY_SERVER} may be left out.
 */
export function editable(application: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(application).filter(([name]) => !SET_BY_SERVER.includes(name)))
}

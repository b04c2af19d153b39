/** What the server sets in an application. An update does not take it. */
const SET_BY_SERVER = [
  ...['id', 'tenant_id', 'type', 'keys', 'key'],
  ...['created_by', 'created_at', 'modified_by', 'modified_at'],
]

/**
 * The attributes of an application that a person may edit: all but {@link SET_BY_SERVER}. An update removes what
 * it does not give, so an attribute that were left out here would be removed by each edit.
 */
export function editable(application: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(application).filter(([name]) => !SET_BY_SERVER.includes(name)))
}

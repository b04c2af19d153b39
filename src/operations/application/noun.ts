import * as application from './application.js'
import * as key from './application-key.js'

export const noun = {
  name: 'app',
  summary: 'Manage applications: API keys, permissions and access rules',
  groups: { key: 'Create, list and revoke the keys of an application.' },
  operations: [
    application.createApplication,
    application.listApplications,
    application.getApplication,
    application.updateApplication,
    application.deleteApplication,
    application.regenerateKey,
    key.createKey,
    key.listKeys,
    key.getKey,
    key.deleteKey,
    application.whoami,
    application.listPermissions,
  ],
}

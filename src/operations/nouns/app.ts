/** The noun `app` and its operations, in the order of the help. */
import * as application from '../application/application.js'

export const noun = {
  name: 'app',
  summary: 'Manage applications: API keys, permissions and access rules',
  operations: [
    application.createApplication,
    application.listApplications,
    application.getApplication,
    application.updateApplication,
    application.deleteApplication,
    application.regenerateKey,
    application.whoami,
    application.listPermissions,
  ],
}

import { idOf } from '../../framework/schema.js'
import { manage } from '../manage.js'
import { applicationOutput, viewApplication } from './application-record.js'

export const id = idOf('app', 'The id of the application, or its name.')

export const managed = manage({
  name: 'app',
  kind: 'application',
  path: '/applications',
  permission: 'application',
  id,
  output: applicationOutput,
  view: ({ now }, record) => viewApplication(record, now),
})

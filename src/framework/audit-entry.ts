import type { Transform } from '../domain/access/permissions.js'
import type { AnswerSubject } from '../domain/records/answer-record.js'
import type { EntityType } from '../domain/records/log-record.js'
import type { TriggeredEvent, WebhookEvent } from '../domain/webhook/events.js'
import type { Caller } from './caller/caller.js'
import type { LogEntry } from './declaration.js'

export interface AuditEntry {
  readonly type: EntityType
  readonly id: string
  readonly as?: LogEntry | undefined
  readonly transform?: Transform | undefined
  readonly about?: object | undefined
  readonly event?: WebhookEvent | TriggeredEvent
  readonly actor: Caller['actor']
}

/**
 * Collects the records that an answer describes. If one of these records is deleted, the stored answer is deleted too.
 */
export interface SubjectCollector {
  addRecorded(recorded: readonly AuditEntry[]): void
  addSubjects(subjects: readonly AnswerSubject[]): void
}

import { formatDate } from '../../domain/dates.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { UpdaterJobRecord } from '../../domain/records/updater-record.js'
import { MAX_FILE_BYTES } from '../../domain/updater/request-file.js'
import { RESULT_VERSIONS } from '../../domain/updater/result-codes.js'
import { CofferError, conflict } from '../../errors.js'
import { owner, requires } from '../../framework/declaration.js'
import { readListByCursor } from '../../framework/list.js'
import { change, list, query } from '../../framework/operation.js'
import { object, text } from '../../framework/output.js'
import { cursorInput, cursorOutput } from '../../framework/page.js'
import { closedInput, inputSchema } from '../../framework/schema.js'
import { readResult, storeFile } from './files.js'
import { HOUR_MS, isJob, JOB, jobOutput, requireJob, viewJob } from './job.js'

const SECRET_BYTES = 32

const jobId = { type: 'string', refersTo: 'updater job', description: 'The id of the job.' } as const
const CREATED = '"$(coffer updater job create -o id)"'
const UPLOAD = `coffer updater job upload ${CREATED} cards.csv`
const WRITE_FILE = `printf 'token\\ncard-1\\n' > cards.csv`

export const createJob = change({
  name: 'updater job create',
  summary: 'Create a job that updates the cards of a file.',
  details:
    'Then upload the file within an hour: run `coffer updater job upload`, or send a PUT to upload_url. The file is CSV with\n' +
    'the columns token, expiration_year (2 digits), expiration_month and merchant_id. Only token is required.',
  access: requires('account-updater:job:create'),
  route: 'POST /account-updater/jobs',
  http: { status: 201, body: { types: ['application/json'], isOptional: true } },
  log: { operation: 'create', message: 'Account updater job created' },
  input: inputSchema([], {
    deduplicate_tokens: {
      type: 'boolean',
      description:
        'Whether existing tokens of the new cards are updated and returned. Default: the setting deduplicate_tokens of the tenant.',
    },
    merchant_id: { type: 'string', description: 'Accepted, without effect.' },
    result_version: {
      type: 'string',
      enum: RESULT_VERSIONS,
      description:
        'The columns of the result: 1 (the default), 1.1 (with new_fingerprint and new_brand) or 1.2 (also with new_last4).',
    },
  }),
  output: jobOutput,
  examples: ['coffer updater job create', 'coffer updater job create --result-version 1.2'],
  async run(context, { deduplicate_tokens, result_version = '1' }) {
    const { store, caller, random, now } = context
    const expires = now + HOUR_MS
    const createSecret = () => Buffer.from(random.bytes(SECRET_BYTES)).toString('base64url')
    const job: UpdaterJobRecord = {
      id: context.createUuid(),
      tenant_id: (await context.tenant()).id,
      status: 'pending',
      expires_at: formatDate(expires),
      upload_secret: createSecret(),
      download_secret: createSecret(),
      actor_type: caller.actor.type,
      ...omitUndefined({ no_reveal: caller.isNoReveal, deduplicates: deduplicate_tokens }),
      result_version,
      read: 0,
      requests: 0,
      parts: 0,
      results: {},
      created_by: caller.actor.id,
      created_at: context.date,
      trace_id: context.traceId,
    }
    await store.insert(JOB, caller.tenant, job, { fresh: true, expires })
    context.audit.record(JOB, job.id, undefined, undefined, job)
    return viewJob(context, job)
  },
})

export const getJob = query({
  name: 'updater job get',
  summary: 'Get the job with this id.',
  access: requires('account-updater:job:read'),
  route: 'GET /account-updater/jobs/{id}',
  log: { operation: 'read', message: 'Account updater job retrieved' },
  input: inputSchema(['id'], { id: jobId }),
  output: jobOutput,
  examples: [`coffer updater job get ${CREATED}`],
  async run(context, { id }) {
    const job = await requireJob(context, id)
    context.audit.record(JOB, job.id)
    return viewJob(context, job)
  },
})

export const listJobs = list({
  name: 'updater job list',
  summary: 'List the jobs, newest first.',
  access: requires('account-updater:job:read'),
  route: 'GET /account-updater/jobs',
  input: inputSchema([], { ...cursorInput, start: { ...cursorInput.start, flag: 'start' } }),
  output: cursorOutput(jobOutput),
  examples: ['coffer updater job list'],
  run: (session, page) =>
    readListByCursor(
      session,
      {
        about: 'updater job list',
        kind: JOB,
        // Records of this kind can also be parts of files.
        where: async () => ({ field: 'entity', value: 'job' }),
        show: (context, record) => (isJob(record) ? viewJob(context, record) : undefined),
      },
      page,
    ),
})

export const uploadJob = change({
  name: 'updater job upload',
  summary: 'Upload the file of a job, and process it.',
  details: 'Without a server, the command ends when the job has ended.',
  access: owner,
  input: closedInput(['id', 'file'], {
    id: jobId,
    file: { type: 'string', description: 'The text of the file: CSV.' },
  }),
  output: jobOutput,
  examples: [`${WRITE_FILE} && ${UPLOAD}`],
  async run(context, { id, file }) {
    const job = await requireJob(context, id)
    if (job.status !== 'pending') throw conflict('This job has its file already.')
    const bytes = Buffer.from(file)
    if (bytes.length > MAX_FILE_BYTES)
      throw new CofferError('too_large', `The file is larger than the limit of ${MAX_FILE_BYTES} bytes.`)
    context.enqueue(await storeFile(context.store, context.caller.tenant, job, bytes))
    const message = 'File of account updater job uploaded'
    context.audit.record(JOB, id, { operation: 'update', message, derivesNoEvent: true })
    return viewJob(context, await requireJob(context, id))
  },
})

export const downloadJob = query({
  name: 'updater job download',
  summary: 'Print the result of a completed job as CSV.',
  plaintext: 'refused',
  access: owner,
  input: closedInput(['id'], { id: jobId }),
  output: object({ file: text }),
  cli: { positionals: ['id'] },
  examples: [`${WRITE_FILE} && coffer updater job download "$(${UPLOAD} -o id)"`],
  async run(context, { id }) {
    const job = await requireJob(context, id)
    if (job.status !== 'completed') throw conflict(`This job has no result, because it is ${job.status}.`)
    context.audit.record(JOB, id, { operation: 'read', message: 'Result of account updater job retrieved' })
    return { file: await readResult(context.store, context.caller.tenant, job) }
  },
})

/** A form that sends a request with the grants of an application. The server removes data from the answer. */
import { useEffect, useState } from 'preact/hooks'
import type { RequestRecord } from '../framework/ports/control.js'
import { useLive } from './api.js'
import { Choose, Dialog, Field, type Fields, Form, Submit, TextArea } from './forms.js'
import { Status } from './parts.js'
import { linkToRequest } from './route.js'
import type { Call, ProxyHeader } from './samples.js'
import { Json } from './text.js'

/** Each `{name}` in `path` and each parameter in `query` becomes a field. */
type Draft = Omit<Call, 'header'> & { query?: string[]; application?: string | undefined }

export const NOBODY = 'no key'
export const OWN_KEY = 'a key of mine …'
const PLACE = /\{(\w+)\}/g
const LONGEST = 14
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

interface ComposerProps {
  draft: Draft
  verb?: string
  /** The person can also edit method and path. */
  isOpen?: boolean
  change?(call: Omit<Call, 'header'>): void
}

type Edited = Pick<Draft, 'method' | 'path' | 'body' | 'application'> & { values: Fields }

export function Composer({ draft, verb = 'Send', isOpen = false, change }: ComposerProps) {
  const { facts, sendRequest } = useLive()
  const [edited, setEdited] = useState<Edited>({ ...draft, values: {} })
  const [answer, setAnswer] = useState<RequestRecord>()
  const set = (more: Partial<Edited>) => setEdited({ ...edited, ...more })
  const { query = [], type = 'application/json', proxy } = draft
  const { method, path, body, values } = edited
  const applications = facts?.applications ?? []
  const usual = applications.find((each) => each.type === 'private') ?? applications[0]
  const whose = edited.application ?? usual?.id ?? NOBODY
  const inPath = isOpen ? [] : [...path.matchAll(PLACE)].map((match) => match[1]!)
  const search = new URLSearchParams(query.flatMap((name) => (values[name] ? [[name, values[name]]] : [])))
  const fill = (all: string, name: string) => (values[name] ? encodeURIComponent(values[name]) : all)
  const target = (isOpen ? path : path.replaceAll(PLACE, fill)) + (search.size === 0 ? '' : `?${search}`)
  const sent = body === undefined || body === '' || method === 'GET' ? {} : { type, body }
  useEffect(() => change?.({ method, path: target, ...sent }), [method, target, body])
  const application = [OWN_KEY, NOBODY].includes(whose) ? undefined : whose
  const send = async ({ key, proxy: value }: Fields) => {
    const named = proxy && { header: proxy.header, value }
    setAnswer(await sendRequest({ method, target, ...sent, application, key, proxy: named }))
  }
  const names = Object.fromEntries(applications.map(({ id, name, type: kind }) => [id, `${name} (${kind})`]))
  const callers = { ...names, [NOBODY]: NOBODY, [OWN_KEY]: OWN_KEY }
  return (
    <Form class="stack" send={send}>
      <div class="form">
        <Choose label="As" isShown of={callers} value={whose} choose={(to) => set({ application: to })} />
        {whose === OWN_KEY && <Field label="Key" name="key" type="password" required grows />}
        {isOpen && (
          <Choose label="Method" isShown of={METHODS} value={method} choose={(to) => set({ method: to })} />
        )}
        {proxy && <ProxyField of={proxy} />}
        {isOpen && <Field label="Path" value={path} required grows change={(to) => set({ path: to })} />}
        {[...inPath, ...query].map((name) => {
          const fillIn = (value: string) => set({ values: { ...values, [name]: value } })
          return <Field key={name} label={name} required={inPath.includes(name)} change={fillIn} />
        })}
      </div>
      {(isOpen ? method !== 'GET' : body !== undefined) && (
        <TextArea
          label="Body"
          rows={Math.min(LONGEST, (body ?? '').split('\n').length + 1)}
          text={body ?? ''}
          change={(to) => set({ body: to })}
        />
      )}
      <div class="row">
        <Submit text={verb} kind="primary" />
        {isOpen && <button type="reset">Close</button>}
      </div>
      <div class="stack" role="status">
        {answer && <Answer record={answer} />}
      </div>
    </Form>
  )
}

/** Without a known value the field is empty, and the browser does not send the form. */
function ProxyField({ of: { header, value } }: { of: ProxyHeader }) {
  const isKey = header.endsWith('-KEY')
  return (
    <Field
      {...{ label: header, name: 'proxy', defaultValue: value, required: true, grows: true }}
      {...(isKey && value === undefined && { type: 'password' as const })}
      help={
        isKey ? 'The key or the id of the proxy. Coffer records no key.' : 'The address of the destination.'
      }
    />
  )
}

function Answer({ record: { status, ms, trace_id, answer } }: { record: RequestRecord }) {
  return (
    <>
      <div class="row">
        <Status status={status} />
        <span class="dim">{ms} ms</span>
        <a class="push" href={linkToRequest(trace_id)}>
          See it in Requests
        </a>
      </div>
      {answer !== undefined && <Json label="Answer, without data" value={answer} />}
    </>
  )
}

/** `note`: explains the sample data in the draft. */
export const ComposeDialog = ({ draft, note }: { draft: Draft; note: string | undefined }) => (
  <Dialog title="Edit and send">
    {note && <p>{note}</p>}
    <Composer draft={draft} isOpen />
  </Dialog>
)

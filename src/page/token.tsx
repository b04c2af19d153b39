import { useEffect, useState } from 'preact/hooks'
import type { Access } from '../framework/ports/page.js'
import type { ResultOf } from '../operations/all.js'
import { useLive, useNameOf } from './api.js'
import { describeAccess } from './decision.js'
import { Button, Choose, Confirm, EditDialog, Field, type Fields, TextArea } from './forms.js'
import { Badge, CodeTabs, Copy, Detail, Facts, formatJson, Json, Seeing, Table, Tabs, Time } from './parts.js'
import { go, linkTo, type Route } from './route.js'
import { SAMPLES } from './samples.js'

export type Token = ResultOf<'token list'>['data'][number]

export const TYPES = Object.fromEntries(Object.keys(SAMPLES).map((type) => [type, type]))

/** Formats masked data in one line: `visa •••• 4242 · 12/40`. */
export function describeShown({ card, bank, data }: Token): string | undefined {
  if (card !== undefined) {
    const { brand = 'card', last4, expiration_month: month, expiration_year: year } = card
    return `${brand} •••• ${last4}${month && year ? ` · ${String(month).padStart(2, '0')}/${String(year).slice(-2)}` : ''}`
  }
  if (bank !== undefined) return `•••• ${bank.account_number_last4} · routing ${bank.routing_number}`
  const texts =
    typeof data === 'object' && data !== null
      ? Object.values(data).filter((each) => typeof each !== 'object')
      : [data]
  const shown = texts.filter((each) => each !== undefined && each !== null).slice(0, 2)
  return shown.length === 0
    ? undefined
    : shown.join(' · ').replaceAll(/X{2,}/g, (run) => '•'.repeat(run.length))
}

export const shortId = (id: string) => (/^[0-9a-f]{8}-/.test(id) ? `${id.slice(0, 8)}…` : id)

export function TokenDetail({ token, route }: { token: Token; route: Route }) {
  const { ask, session } = useLive()
  const nameOf = useNameOf()
  const [isLeaving, setLeaving] = useState(false)
  const { id, type, data, card, bank, metadata = {} } = token
  const overview = () => (
    <>
      {data === undefined ? (
        <p class="dim">This token has no mask, so none of its data is shown.</p>
      ) : (
        <Json label="Data, as its mask shows it" value={data} />
      )}
      <Facts
        of={{
          Id: <code>{id}</code>,
          Containers: <code>{token.containers.join(' ')}</code>,
          Brand: card?.brand,
          'Last four': card?.last4 ?? bank?.account_number_last4,
          BIN: card?.bin,
          Metadata:
            Object.keys(metadata).length === 0 ? undefined : (
              <code>
                {Object.entries(metadata)
                  .map(([name, value]) => `${name} = ${value}`)
                  .join(', ')}
              </code>
            ),
          Fingerprint: <code>{token.fingerprint}</code>,
          Created: [<Time key="at" of={token.created_at} />, ` by ${nameOf(token.created_by)}`],
          Modified: token.modified_at && [
            <Time key="at" of={token.modified_at} />,
            ` by ${nameOf(token.modified_by)}`,
          ],
          Expires: <Time of={token.expires_at} />,
        }}
      />
    </>
  )
  const head = [
    <h2 key="shows">{describeShown(token) ?? shortId(id)}</h2>,
    <Badge key="type" kind="push">
      {type}
    </Badge>,
  ]
  return (
    <Detail back={linkTo('tokens', undefined, route.filters)} head={head}>
      <div class="row">
        <Copy label="Copy id" text={id} />
        <Copy label="Copy expression" text={`{{ ${id} }}`} />
        <a class="button" href={linkTo('requests', undefined, { find: `/tokens/${id}` })}>
          Its requests
        </a>
        <Button class="danger push" text="Delete …" act={() => setLeaving(true)} />
      </div>
      <Tabs
        label="About this token"
        tabs={{
          Overview: overview,
          'Who may read it': () => <Readers id={id} containers={token.containers} />,
          Code: () => (
            <CodeTabs
              call={{ method: 'GET', path: `/tokens/${encodeURIComponent(id)}`, header: session.header }}
            />
          ),
        }}
      />
      {isLeaving && (
        <Confirm
          title="Delete the token?"
          text={`The data of ${id} is destroyed. Its log stays.`}
          verb="Delete"
          act={() => ask('token delete', { id }).then(() => go(linkTo('tokens', undefined, route.filters)))}
          close={() => setLeaving(false)}
        />
      )}
    </Detail>
  )
}

function Readers({ id, containers }: { id: string; containers: string[] }) {
  const { dryRun } = useLive()
  const nameOf = useNameOf()
  const [found, setFound] = useState<Access[]>()
  useEffect(
    () => void dryRun({ permission: 'token:read', target: id }).then(setFound, () => setFound([])),
    [id],
  )
  const owner = [
    'owner',
    <Seeing key="sees" transform="reveal" />,
    'owns the vault; this page still shows it masked',
  ]
  const others = found?.map((access) => [
    <a key="who" href={linkTo('applications', access.application_id)}>
      {nameOf(access.application_id)}
    </a>,
    <Seeing key="sees" transform={access.transform} />,
    describeAccess(access),
  ])
  const rows = [owner, ...(others ?? [])]
  return (
    <>
      <p>
        Who may do <code>token:read</code> on <code>{containers.join(' ')}</code>, and what they see:
      </p>
      <Table head={['Caller', 'Sees it', 'Because']} rows={rows} />
    </>
  )
}

/** Text that is no JSON is a value as it is. */
function parseLoosely(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export function NewToken({ close }: { close(): void }) {
  const { ask } = useLive()
  const [type, setType] = useState('card')
  const create = async ({ data = '', containers, mask, ...rest }: Fields) => {
    const isText = typeof SAMPLES[type] === 'string' && type !== 'token'
    const { id } = await ask('token create', {
      ...rest,
      type,
      data: isText ? data : parseLoosely(data),
      ...(containers && { containers: containers.split(/[\s,]+/) }),
      ...(mask && { mask: parseLoosely(mask) }),
    })
    go(linkTo('tokens', id))
  }
  return (
    <EditDialog title="New token" verb="Create" send={create} close={close}>
      <div class="form">
        <Choose label="Type" isShown of={TYPES} value={type} choose={setType} />
        <Field label="Id" name="id" placeholder="a random UUID" grows />
      </div>
      <TextArea key={type} label="Data" name="data" rows={6} text={formatJson(SAMPLES[type])} />
      <div class="form">
        <Field label="Containers" name="containers" placeholder="those of its type" grows />
        <Field label="Expires" name="expires_at" placeholder="a date" grows />
        <Field label="Mask" name="mask" placeholder="that of its type" grows />
      </div>
      <p class="dim small">Then shown masked, as everywhere on this page.</p>
    </EditDialog>
  )
}

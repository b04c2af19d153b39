import { useState } from 'preact/hooks'
import type { TracedLogs } from '../control/page-trail.js'
import { neutralize, toCsvLine } from '../domain/text/spreadsheet.js'
import type { ResultOf } from '../operations/all.js'
import { useLive, useNameOf, useRead, useRoute } from './api.js'
import { Button } from './forms.js'
import { Badge, Empty, Facts, NoneFits } from './parts.js'
import { linkTo, setFilter } from './route.js'
import { Rows } from './rows.js'
import { Detail, Filter, fits, Missing, Screen } from './screen.js'
import { countOf, formatJson, formatTime, Time } from './text.js'
import { EntityLink, TimeLine } from './trail.js'

const LOG_SIZE = 1000
/** An export reads at most this many pages of {@link LOG_SIZE} records. */
const EXPORT_PAGES = 50
const MINUTE_MS = 60_000
const ENTITIES = ['token', 'application', 'reactor', 'proxy', 'threeds_session', 'invitation', 'tenant']

const NONE = {
  title: 'Nothing is logged yet',
  text: 'Coffer logs each change of the vault and each read of a token here, but not the reads of this page.',
  command: 'coffer log tail',
}

type Traced = TracedLogs['data'][number]
type Exported = Omit<Traced, 'trace_id'>

/** Includes the whole minute of `to`. */
function datesOf({ from, to }: Record<string, string>) {
  return {
    ...(from && { start_date: `${from}:00Z` }),
    ...(to && { end_date: new Date(Date.parse(`${to}:00Z`) + MINUTE_MS).toISOString() }),
  }
}

function useWho() {
  const nameOf = useNameOf()
  return ({ actor_id, actor_type }: Exported) =>
    actor_type === 'system' ? 'the vault' : nameOf(actor_id, actor_type)
}

export function Log() {
  const who = useWho()
  const { ask, news } = useLive()
  const route = useRoute()
  const [check, setCheck] = useState<ResultOf<'log verify'>>()
  const { entity, by } = route.filters
  const input = { ...(entity && { entity_type: entity }), ...datesOf(route.filters) }
  const { result, error } = useRead(
    `log ${JSON.stringify(input)}`,
    (server) => server.readLog({ ...input, size: LOG_SIZE }),
    // Reading a token does not change the version in the news, but adds a log record. Therefore the log is read again
    // after each request.
    news?.count,
  )
  const all = result?.data ?? []
  const isFound = (record: Exported) =>
    (!by || who(record) === by) &&
    fits(route, `${record.entity_id} ${record.entity_name ?? ''} ${record.message} ${who(record)}`)
  const rows = all.filter(isFound)
  const chosen = rows.find(({ id }) => id === route.id)
  const found = check?.is_whole
    ? `Chain verified, ${countOf(check.records, 'record')}`
    : `Broken at record ${check?.broken_at}`
  const isFiltered = all.length > 0 || Object.values(route.filters).some(Boolean)
  return (
    <Screen
      find="Id, name, what happened"
      error={error}
      filters={[
        <Filter key="entity" name="entity" any="Any entity" of={ENTITIES} />,
        <Filter key="by" name="by" any="By anyone" of={all.map(who).sort()} />,
        <DateFilter key="from" name="from" label="From (UTC)" />,
        <DateFilter key="to" name="to" label="To (UTC)" />,
      ]}
      actions={
        <>
          <Export input={input} isFound={isFound} />
          {check && <Badge kind={check.is_whole ? 'good' : 'bad'}>{found}</Badge>}
          <Button
            text={check ? 'Verify again' : 'Verify'}
            act={async () => setCheck(await ask('log verify'))}
          />
        </>
      }
    >
      <Rows
        empty={result && (isFiltered ? <NoneFits thing="record" /> : <Empty {...NONE} />)}
        caption="Log records, newest first. Times in UTC."
        rows={rows}
        chosen={chosen}
        linkOf={({ id }) => linkTo('log', id, route.filters)}
        columns={[
          ['Time UTC', 'mono dim w11', ({ created_at }) => formatTime(created_at, 23)],
          ['Who', 'w8', who],
          ['What', 'first link', ({ message }) => message],
          ['Object', 'mono', (record) => <EntityOf of={record} />],
        ]}
      />
      {chosen && <RecordDetail key={chosen.id} record={chosen} who={who(chosen)} />}
      {!chosen && route.id !== undefined && result && (
        <Missing
          thing="record"
          id={route.id}
          why={`The record is not among the newest ${LOG_SIZE} records that match the filters.`}
        />
      )}
    </Screen>
  )
}

function DateFilter({ name, label }: { name: string; label: string }) {
  const route = useRoute()
  return (
    <label class="row">
      {label}
      <input
        type="datetime-local"
        value={route.filters[name] ?? ''}
        onInput={(event) => setFilter(route, name, event.currentTarget.value)}
      />
    </label>
  )
}

const EntityOf = ({ of: { entity_type, entity_id, entity_name } }: { of: Traced }) => (
  <EntityLink type={entity_type} id={entity_id} name={entity_name} />
)

function RecordDetail({ record, who }: { record: Traced; who: string }) {
  const { id, message, created_at, trace_id } = record
  const facts = {
    Time: <Time of={created_at} />,
    Who: who,
    Object: <EntityOf of={record} />,
    'Trace id': <code>{trace_id}</code>,
  }
  return (
    <Detail title={message}>
      <Facts of={facts} />
      <h3>Time line</h3>
      <TimeLine of={{ trace: trace_id }} current={id} />
    </Detail>
  )
}

const COLUMNS = [
  ...(['created_at', 'actor', 'actor_type', 'actor_id', 'operation'] as const),
  ...(['entity_type', 'entity_id', 'message', 'id'] as const),
]

type ExportProps = { input: object; isFound(record: Exported): boolean }

function Export({ input, isFound }: ExportProps) {
  const { read } = useLive()
  const who = useWho()
  const [told, tell] = useState('')
  const save = async (format: 'csv' | 'json') => {
    // If records are added during the export, a page repeats records of the page before. Therefore records are
    // collected by id.
    const records = new Map<string, Exported>()
    let searched = 0
    let total = 1
    for (let page = 1; page <= EXPORT_PAGES && searched < total; page++) {
      tell(`Reading page ${page} …`)
      const { data, pagination } = await read('log list', { ...input, page, size: LOG_SIZE })
      for (const record of data as Exported[]) if (isFound(record)) records.set(record.id, record)
      searched += data.length
      total = data.length === 0 ? 0 : pagination.total_items
    }
    const rows = [...records.values()].map((record) => ({ ...record, actor: who(record) }))
    const lines = rows.map((row) => toCsvLine(COLUMNS.map((name) => neutralize(row[name] ?? ''))))
    const csv = [toCsvLine(COLUMNS), ...lines].map((line) => `${line}\r\n`).join('')
    download(`log.${format}`, format === 'csv' ? csv : `${formatJson(rows)}\n`)
    const left =
      searched < total ? ` from the newest ${searched} of ${total}. Set dates to export others` : ''
    tell(`Exported ${countOf(rows.length, 'record')}${left}.`)
  }
  return (
    <>
      <span role="status" class="dim small">
        {told}
      </span>
      <Button text="Export CSV" act={() => save('csv')} />
      <Button text="Export JSON" act={() => save('json')} />
    </>
  )
}

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text]))
  Object.assign(document.createElement('a'), { href: url, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(url), MINUTE_MS)
}

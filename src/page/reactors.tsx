/** Reactors, with their last runs and what they printed. */
import { type Row, useAsked } from './api.js'
import { Code, Details, Heading, Shown, time } from './parts.js'

export function Reactors() {
  const found = useAsked('reactor list', { size: 100 })
  return (
    <>
      <Heading text="Reactors" again={found.again} />
      <Shown of={found}>
        {({ data }) => (
          <>
            {data.length === 0 && <p class="dim">None yet.</p>}
            {data.map((reactor) => (
              <Details key={reactor.id} title={<b>{reactor.name}</b>} about={<code>{reactor.id}</code>}>
                {() => <Runs reactor={reactor} />}
              </Details>
            ))}
          </>
        )}
      </Shown>
    </>
  )
}

function Runs({ reactor: { id } }: { reactor: Row<'reactor list'> }) {
  const found = useAsked('reactor logs', { id })
  return (
    <Shown of={found}>
      {(runs) => (
        <>
          {runs.length === 0 && <p class="dim">It has not run yet.</p>}
          {runs.toReversed().map((run) => (
            <article key={run.id}>
              <h2>
                {time(run.created_at)}{' '}
                <span class={run.outcome === 'done' ? 'status' : 'status fault'}>
                  {run.outcome} {run.status}
                </span>
              </h2>
              <p class="dim">
                {run.duration_ms} ms, {run.memory_mib} MiB, trace id <code>{run.trace_id}</code>
              </p>
              {run.detail !== undefined && <p>{run.detail}</p>}
              {run.console.length > 0 && (
                <Code
                  label="Printed"
                  text={run.console.map(({ level, text }) => `${level}: ${text}`).join('\n')}
                />
              )}
              {run.stack !== undefined && <Code label="Stack" text={run.stack} />}
            </article>
          ))}
        </>
      )}
    </Shown>
  )
}

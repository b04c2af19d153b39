/** The reference, made of the OpenAPI document: operations by noun, what they take and answer, a form to try them. */
import { createContext } from 'preact'
import { useContext, useEffect, useRef, useState } from 'preact/hooks'
import { Badge, CodeTabs, Detail, Facts, Method, Table, Tabs } from './parts.js'
import type { Route } from './route.js'
import type { Call } from './samples.js'
import { ItemScreen } from './screen.js'
import { Composer } from './send.js'

interface Schema {
  type?: string | string[]
  enum?: unknown[]
  items?: Schema
  $ref?: string
  default?: unknown
  description?: string
  properties?: Record<string, Schema>
  required?: string[]
}

interface Described {
  operationId: string
  tags: string[]
  summary: string
  description: string
  parameters: { name: string; in: string; required?: boolean; description?: string; schema: Schema }[]
  requestBody?: { content: Record<string, { schema?: Schema; example?: unknown }> }
  responses: Record<
    string,
    { $ref?: string; description?: string; content?: Record<string, { schema?: Schema }> }
  >
  security: Record<string, string[]>[]
  'x-code-samples': { source: string }[]
}

export interface Document {
  paths: Record<string, Record<string, Described>>
  info: { version: string; description: string }
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, { name: string }> }
}

const DocumentContext = createContext<Document | undefined>(undefined)
export const DocumentProvider = DocumentContext.Provider

type Operation = Described & { method: string; path: string; id: string }
/** A section that the server wrote. */
type Guided = { id: string; path?: undefined }

function listOperations(document: Document | undefined): Operation[] {
  return Object.entries(document?.paths ?? {}).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      id: operation.operationId,
      method: method.toUpperCase(),
      path,
    })),
  )
}

const bodyOf = ({ requestBody }: Described) => {
  const [type, { schema, example } = {}] = Object.entries(requestBody?.content ?? {})[0] ?? []
  return type === undefined
    ? undefined
    : { type: type === '*/*' ? 'application/json' : type, schema, example }
}

/** Media type and example of the body of an operation, such as `token create`. */
export function useOperation(name: string | undefined) {
  const document = useContext(DocumentContext)
  const found = listOperations(document).find(({ operationId }) => operationId === name?.replaceAll(' ', '-'))
  return found && bodyOf(found)
}

const GUIDES: Record<string, string> = { clients: 'Clients', fidelity: 'What is emulated' }

/** `isAlone`: nobody is signed in, so nothing can be sent. */
export function Reference({ route, isAlone = false }: { route: Route; isAlone?: boolean }) {
  const document = useContext(DocumentContext)
  const guides = Object.keys(GUIDES).map((id): Guided => ({ id }))
  const all: (Operation | Guided)[] = [...listOperations(document), ...guides]
  return (
    <ItemScreen
      title="Reference"
      screen="reference"
      thing="operation"
      route={route}
      placeholder="Path, operation"
      actions={
        <a class="button" href="/openapi.json">
          OpenAPI document
        </a>
      }
      all={document && all}
      textOf={(row) =>
        row.path ? `${row.method} ${row.path} ${row.id.replaceAll('-', ' ')} ${row.summary}` : ''
      }
      groupOf={(row) => (row.path ? row.tags[0]! : 'about')}
      item={(row) => [
        <span key="method">{row.path && <Method name={row.method} />}</span>,
        <span key="path" class="mono">
          {row.path ? row.path : GUIDES[row.id]}
        </span>,
      ]}
      detail={(row) =>
        row.path ? (
          <OperationDetail key={row.id} operation={row} isAlone={isAlone} />
        ) : (
          <Guide key={row.id} id={row.id} />
        )
      }
    />
  )
}

/** A section that the server wrote. */
function Guide({ id }: { id: string }) {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => place.current!.append(document.getElementById(id)!.cloneNode(true)), [])
  return (
    <Detail back="#/reference" head={<h2>{GUIDES[id]}</h2>}>
      <div class="guide stack" ref={place} />
    </Detail>
  )
}

function OperationDetail({ operation, isAlone }: { operation: Operation; isAlone: boolean }) {
  const document = useContext(DocumentContext)!
  const { method, path, summary, description, parameters, security } = operation
  const body = bodyOf(operation)
  const example = body && (body.example === undefined ? '{}' : JSON.stringify(body.example, undefined, 2))
  const [call, setCall] = useState<Omit<Call, 'header'>>({ method, path, type: body?.type, body: example })
  const inside = (place: string) => parameters.filter((each) => each.in === place)
  const headers = Object.fromEntries(inside('header').map((each) => [each.name, each.description]))
  const needed = security.flatMap((each) => Object.values(each)).flat()
  const header = Object.values(document.components.securitySchemes)[0]!.name
  const draft = {
    method,
    path,
    query: inside('query').map(({ name }) => name),
    type: body?.type,
    body: example,
  }
  return (
    <Detail
      back="#/reference"
      kind="doc"
      head={
        <>
          <Method name={method} />
          <h2 class="mono">{path}</h2>
          <span class="dim">{summary}</span>
          <span class="push row">
            {needed.map((name) => (
              <Badge key={name}>{name}</Badge>
            ))}
          </span>
        </>
      }
    >
      <div class="stack">
        {description.split('\n\n').map((text) => (
          <p key={text}>{text}</p>
        ))}
        {inside('header').length > 0 && [<h3 key="title">Header</h3>, <Facts key="facts" of={headers} />]}
        {[...inside('path'), ...inside('query')].length > 0 && (
          <>
            <h3>Parameters</h3>
            <Properties
              of={[...inside('path'), ...inside('query')].map((each) => ({ ...each, about: each.schema }))}
            />
          </>
        )}
        {body?.schema && [<h3 key="title">Body</h3>, <SchemaTable key="table" schema={body.schema} />]}
        <h3>Answers</h3>
        <Answers responses={operation.responses} />
        <h3>On the command line</h3>
        <CommandLine samples={operation['x-code-samples']} />
      </div>
      <div class="stack">
        {!isAlone && !path.startsWith('/proxy') && (
          <div class="card stack">
            <h2>Try it</h2>
            <Composer draft={draft} change={setCall} />
          </div>
        )}
        <CodeTabs call={{ ...call, header }} />
      </div>
    </Detail>
  )
}

const CommandLine = ({ samples }: { samples: { source: string }[] }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
  <pre class="code" tabIndex={0}>
    {samples.map(({ source }) => source).join('\n')}
  </pre>
)

const MEANINGS: Record<string, string> = {
  400: 'The request is not valid; errors says which property.',
  401: 'The API key is missing, unknown or expired.',
  403: 'The key has no permission for this.',
  404: 'There is nothing with this id.',
  409: 'It exists, or the first call with this idempotency key still runs.',
  413: 'The body is too long.',
  415: 'The content type is another.',
  429: 'More requests than the application may send; Retry-After says when to come back.',
  500: 'The server failed; its log has the reason under the trace id.',
}

function Answers({ responses }: Pick<Described, 'responses'>) {
  const { schemas } = useContext(DocumentContext)!.components
  const done = Object.entries(responses).filter(([, { $ref }]) => $ref === undefined)
  const refused = Object.keys(responses).filter(
    (status) => MEANINGS[status] !== undefined && responses[status]?.$ref,
  )
  const tabs = done.map(([status, { description, content = {} }]) => {
    const schema = content['application/json']?.schema
    return [
      status,
      () => (schema === undefined ? <p>{description}</p> : <SchemaTable schema={schema} />),
    ] as const
  })
  const problems = () => (
    <>
      <Facts of={Object.fromEntries(refused.map((status) => [status, MEANINGS[status]]))} />
      <SchemaTable schema={schemas.Problem ?? {}} />
    </>
  )
  return (
    <Tabs
      label="Answers"
      tabs={{ ...Object.fromEntries(tabs), ...(refused.length > 0 && { Problems: problems }) }}
    />
  )
}

function SchemaTable({ schema }: { schema: Schema }) {
  const { schemas } = useContext(DocumentContext)!.components
  const named = (each: Schema): Schema =>
    each.$ref === undefined ? each : (schemas[each.$ref.split('/').at(-1)!] ?? {})
  const whole = named(schema)
  const { properties = {}, required = [] } = whole.type === 'array' ? named(whole.items ?? {}) : whole
  const rows = Object.entries(properties).map(([name, about]) => ({
    name,
    about,
    required: required.includes(name),
  }))
  if (rows.length === 0) return <p>{describeType(schema)}</p>
  return (
    <>
      {whole.type === 'array' && <p>A list of:</p>}
      <Properties of={rows} />
    </>
  )
}

function Properties({
  of,
}: {
  of: { name: string; about: Schema; required?: boolean; description?: string }[]
}) {
  const rows = of.map(({ name, about, required, description = about.description }) => [
    <span key="name">
      <code>{name}</code> {required && <Badge>required</Badge>}
    </span>,
    describeType(about),
    description,
  ])
  return <Table head={['Property', 'Type', 'About']} rows={rows} />
}

function describeType({ type, enum: choices, items, $ref, default: usual, description }: Schema): string {
  if ($ref !== undefined) return $ref.split('/').at(-1)!
  if (choices !== undefined) return description === undefined ? `one of ${choices.join(', ')}` : 'string'
  const name = type === undefined ? 'any JSON' : [type].flat().join(' or ')
  return `${name}${items === undefined ? '' : ` of ${describeType(items)}`}${usual === undefined ? '' : `, default ${usual}`}`
}

/** This header names the proxy or the destination of a call. `value`: undefined if the page does not have it. */
export interface ProxyHeader {
  header: string
  value?: string | undefined
}

export interface Call {
  method: string
  path: string
  /** Undefined for a request without a key. */
  header?: string | undefined
  /** If `proxy.value` is undefined, the code reads the value from the environment. */
  proxy?: ProxyHeader | undefined
  type?: string | undefined
  body?: string | undefined
  /** For the `coffer` command. `template`: the path with `{id}` in place of ids. */
  operation?: string | undefined
  template?: string | undefined
}

/** Quotes any text as one word of a POSIX shell. */
const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
const indent = (lines: string[], by: string) => lines.map((line) => `${by}${line}\n`).join('')

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Without these options, curl expands `[]` and `{}` in addresses, and removes `..`. */
const curlOptions = (path: string) => [
  ...(/[[\]{}]/.test(path) ? ['--globoff'] : []),
  ...(/\/\./.test(path) ? ['--path-as-is'] : []),
]

/** Undefined if the path does not match the template. */
function idsOf(path: string, template: string): string[] | undefined {
  const [given, known] = [path.split('?')[0]!.split('/'), template.split('/')]
  if (given.length !== known.length) return undefined
  const ids = given.filter((_, at) => known[at]!.startsWith('{'))
  try {
    return ids.map(decodeURIComponent)
  } catch {
    return undefined
  }
}

/** `variable`: the environment variable from which the code reads the value. */
type Header = [name: string, value: { text: string } | { variable: string }]

function headersOf({ header, proxy, type, body }: Call): Header[] {
  const headers: Header[] = []
  if (header !== undefined) headers.push([header, { variable: 'COFFER_API_KEY' }])
  if (proxy !== undefined) headers.push([proxy.header, proxyValue(proxy)])
  if (body !== undefined) headers.push(['Content-Type', { text: String(type) }])
  return headers
}

/** For example COFFER_PROXY_KEY for the header SVC-PROXY-KEY. */
const proxyValue = ({ header, value }: ProxyHeader): Header[1] =>
  value === undefined
    ? { variable: header.replace(/^[^-]+/, 'COFFER').replaceAll('-', '_') }
    : { text: value }

export function describeKeys(call: Call): string {
  const variables = headersOf(call).flatMap(([, value]) => ('variable' in value ? [value.variable] : []))
  if (variables.length === 0) return 'The request has no key'
  return variables.length === 1
    ? `The key comes from ${variables[0]}`
    : `The code reads ${variables.join(' and ')}`
}

export const LANGUAGES: Record<string, (call: Call & { origin: string }) => string | undefined> = {
  curl: ({ origin, ...call }) => {
    const { method, path, body } = call
    return [
      // Quotes the method, because a client can send any text as method.
      `curl ${method === 'GET' ? '' : `-X ${quote(method).replace(/^'([A-Z]+)'$/, '$1')} `}${quote(origin + path)}`,
      ...curlOptions(path),
      ...headersOf(call).map(([name, value]) =>
        'text' in value ? `-H ${quote(`${name}: ${value.text}`)}` : `-H "${name}: $${value.variable}"`,
      ),
      // `--data-raw`, because `-d` reads a file if the body begins with `@`.
      ...(body === undefined ? [] : [`--data-raw ${quote(body)}`]),
    ].join(' \\\n  ')
  },
  coffer: ({ origin, path, header, proxy, body, operation, template }) => {
    const ids = template === undefined ? undefined : idsOf(path, template)
    const isOther = header === undefined || proxy !== undefined || path.includes('?')
    if (operation === undefined || ids === undefined || isOther) return undefined
    const named = ids.length === 0 ? '' : ` -- ${ids.map(quote).join(' ')}`
    const input = body === undefined ? '' : `printf %s ${quote(body)} | `
    const file = body === undefined ? '' : ' --file -'
    return `${input}coffer ${operation} --url ${quote(origin)}${file}${named}`
  },
  Node: ({ origin, ...call }) => {
    const { method, path, body } = call
    const headers = headersOf(call).map(([name, value]) => {
      const text = 'text' in value ? JSON.stringify(value.text) : `process.env.${value.variable}`
      return `'${name.toLowerCase()}': ${text}`
    })
    const lines = [
      ...(method === 'GET' ? [] : [`method: ${JSON.stringify(method)},`]),
      ...(headers.length === 0 ? [] : [`headers: { ${headers.join(', ')} },`]),
      ...(body === undefined
        ? []
        : [`body: ${isJson(body) ? `JSON.stringify(${body})` : JSON.stringify(body)},`]),
    ]
    const url = JSON.stringify(origin + path)
    return `const answer = await fetch(${url}, {\n${indent(lines, '  ')}})\nconsole.log(answer.status, await answer.text())`
  },
  Python: ({ origin, ...call }) => {
    const { method, path, body } = call
    const headers = headersOf(call).map(([name, value]) => {
      const text = 'text' in value ? JSON.stringify(value.text) : `os.environ["${value.variable}"]`
      return `"${name}": ${text}`
    })
    const lines = [
      `${JSON.stringify(method)},`,
      `${JSON.stringify(origin + path)},`,
      `headers={${headers.join(', ')}},`,
      ...(body === undefined ? [] : [`data=${JSON.stringify(body)},`]),
    ]
    return `import os, requests\n\nanswer = requests.request(\n${indent(lines, '    ')})\nprint(answer.status_code, answer.text)`
  },
  Go: ({ origin, ...call }) => {
    const { method, path, body } = call
    const reader = body === undefined ? 'nil' : `strings.NewReader(${JSON.stringify(body)})`
    const headers = headersOf(call).map(([name, value]) => {
      const text = 'text' in value ? JSON.stringify(value.text) : `os.Getenv("${value.variable}")`
      return `request.Header.Set("${name}", ${text})`
    })
    return [
      `request, err := http.NewRequest(${JSON.stringify(method)}, ${JSON.stringify(origin + path)}, ${reader})`,
      'if err != nil {\n\treturn err\n}',
      ...headers,
      'answer, err := http.DefaultClient.Do(request)',
    ].join('\n')
  },
}

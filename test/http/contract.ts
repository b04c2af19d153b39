/** Checks that responses match the OpenAPI document. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import type { Registry } from '../../src/framework/registry.js'
import type { HttpResponse } from '../../src/http/exchange.js'
import { createDocument, type OpenApiDocument } from '../../src/http/openapi/openapi.js'

type Shown = Pick<HttpResponse, 'status' | 'headers' | 'body'>

export interface Contract {
  /** Returns how `answer` differs from the document for `method` on `path`, or undefined if `answer` matches. */
  findBreach(method: string, path: string, answer: Shown): string | undefined
  /**
   * Returns how the answer to a request that matches no operation differs from the document, or undefined if the answer
   * matches.
   */
  findProblemBreach(answer: Shown): string | undefined
}

const PROBLEM_TYPES = ['application/problem+json', 'application/json']

/** Returns whether the code of a reactor or proxy made the response. Only responses that code made have this header. */
export function isGiven({ headers }: Shown): boolean {
  return headers['content-security-policy'] === 'sandbox'
}

/** Returns the OpenAPI document of `registry`. */
export const documentOf = (registry: Registry): OpenApiDocument =>
  createDocument(registry, { version: '0.0.0', prefix: 'svc', bodyLimitBytes: 1024 * 1024 })

/** @throws Error if a schema of the document is invalid */
export function createContract(document: OpenApiDocument): Contract {
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  formats.default(ajv, ['uuid', 'date-time'])
  ajv.addSchema({ $id: 'openapi', ...document })
  const check = (pointer: string, body: string): string | undefined => {
    const validate = ajv.getSchema(pointer) ?? ajv.compile({ $ref: pointer })
    if (validate(JSON.parse(body))) return undefined
    return ajv.errorsText(validate.errors)
  }
  const findProblemBreach = (answer: Shown): string | undefined => {
    const type = answer.headers['content-type']?.split(';')[0] ?? 'none'
    if (!PROBLEM_TYPES.includes(type)) return `a problem of type ${type}`
    const { status, instance, title } = JSON.parse(answer.body) as Record<'instance' | 'title', string> & {
      status: number
    }
    if (status !== answer.status) return `status ${answer.status} with a problem of ${status}`
    // Errors of the 3-D Secure service have only the attributes that clients of the service read.
    if (title.startsWith('3DS Service'))
      return check('openapi#/components/schemas/ServiceProblem', answer.body)
    if (!Object.values(answer.headers).includes(instance)) return 'an instance that is not the trace id'
    return check('openapi#/components/schemas/Problem', answer.body)
  }
  return {
    findProblemBreach,
    findBreach(method, path, answer) {
      const operation = document.paths[path]?.[method.toLowerCase()]
      if (operation === undefined) return `${method} ${path} is not in the document`
      if (isGiven(answer)) {
        const range = `${Math.floor(answer.status / 100)}XX`
        return operation.responses[range] === undefined ? `${range} is not in the document` : undefined
      }
      if (answer.status >= 400) return findProblemBreach(answer)
      const response = operation.responses[answer.status]
      if (response === undefined) return `status ${answer.status} is not in the document`
      if (response.content === undefined) return answer.body === '' ? undefined : 'a body where there is none'
      const spelled = encodeURIComponent(path.replaceAll('/', '~1'))
      return check(
        `openapi#/paths/${spelled}/${method.toLowerCase()}/responses/${answer.status}/content/application~1json/schema`,
        answer.body,
      )
    },
  }
}

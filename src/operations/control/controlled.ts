/** Declares operations of the control plane: they are for the owner, and only the plane performs them. */

import { type Operation, operation } from '../../framework/operation.js'
import type { ControlPlane } from '../../framework/ports/control.js'
import {
  type Answer,
  closedInput,
  type Infer,
  type ObjectSchema,
  type Schema,
} from '../../framework/schema.js'

export const nothing = closedInput([], {})

type Declared<I extends ObjectSchema, O extends Schema | undefined, Checked, Name extends string> = Pick<
  Operation<I, O, Checked, Name>,
  'name' | 'summary' | 'details' | 'output' | 'columns' | 'positionals' | 'check'
> & {
  /** Default: {@link nothing}. */
  input?: I
  /** The method, and the path below that of the control plane. */
  control: string
  /** The arguments of the command in its example. */
  example?: string
  ask(control: ControlPlane, input: Infer<I>, checked: Checked): Answer<O> | Promise<Answer<O>> | Done<O>
}

/** The result of an operation without an output. */
type Done<O> = O extends undefined ? void | Promise<void> : never

export function controlled<
  const Name extends string,
  const I extends ObjectSchema = typeof nothing,
  const O extends Schema | undefined = undefined,
  Checked = unknown,
>({
  example,
  ask,
  input = nothing as ObjectSchema as I,
  ...declared
}: Declared<I, O, Checked, Name>): Operation<I, O, Checked, Name, undefined> {
  const line = ['coffer', declared.name, ...(example === undefined ? [] : [example])].join(' ')
  return operation<I, Name, O, Checked>({
    ...declared,
    input,
    audience: 'owner',
    examples: [`${line} --url http://localhost:4010`],
    runDetached: async (session, given, checked) =>
      (await ask(session.control(), given, checked)) as Answer<O>,
  })
}

import t from 'tap'
import { walkPages } from '../../src/cli/pages.js'
import type { Task } from '../../src/cli/task.js'
import { CofferError, invalid } from '../../src/errors.js'

/** Creates a list of two items. Every request for a page with another size than 1 fails with `error`. */
function createAsk(error: CofferError) {
  const sizes: unknown[] = []
  const ask = async ({ page, size }: { page?: number; size?: number }) => {
    sizes.push(size)
    if (size !== 1) throw error
    return { pagination: { total_items: 2, page_number: page, page_size: 1, total_pages: 2 }, data: [page] }
  }
  return { sizes, task: { ask } as unknown as Pick<Task, 'ask'> }
}

const walk = async (task: Pick<Task, 'ask'>) => {
  const found: unknown[] = []
  for await (const { data } of walkPages(task, { size: 4 })) found.push(...data)
  return found
}

t.test(
  'smaller pages are requested if the error has the code page_too_large, whatever the text of the error is',
  async (t) => {
    const { sizes, task } = createAsk(new CofferError('page_too_large', 'any text'))
    t.strictSame(await walk(task), [1, 2])
    t.strictSame(sizes, [4, 2, 1, 1])
  },
)

t.test(
  'if the error has another code than page_too_large, the list ends with the error, even if its text is about the size',
  async (t) => {
    const { sizes, task } = createAsk(invalid('size', 'ask for a smaller size'))
    await t.rejects(walk(task), { code: 'validation' })
    t.strictSame(sizes, [4])
  },
)

/** The last batch of a run of `token import` that can be resumed; written with its tokens. It expires. */
export interface ImportRecord {
  id: string
  actor_id: string
  /** The number of rows in earlier batches. */
  first: number
  results: {
    status: 'created' | 'deduplicated' | 'refused'
    id?: string
    reason?: string
    errors?: Record<string, string[]>
  }[]
}

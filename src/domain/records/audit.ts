/** The actors and times of a record's creation and last change. */
export interface Audit {
  created_by: string
  created_at: string
  modified_by?: string
  modified_at?: string
}

/** The audit attributes of a record that the vault may have made itself. */
export type OwnAudit = Omit<Audit, 'created_by'> & Partial<Pick<Audit, 'created_by'>>

package storage

// Limits of DynamoDB, and what follows from them.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
const (
	MaxItemBytes   = 400 << 10 // one item
	MaxCommitBytes = 4 << 20   // one transaction
	MaxActions     = 100       // one transaction
	MaxEvents      = 99        // one transaction, of which one action moves the head
)

// MaxEventsBytes is the most bytes that the events of one commit may take together, as the method
// EventSize of a journal counts them. The rest of [MaxCommitBytes] is enough for the head of any
// aggregate.
const MaxEventsBytes = MaxCommitBytes - 8<<10

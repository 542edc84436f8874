package storage

// Limits of DynamoDB, and limits that follow from them.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
const (
	MaxItemBytes   = 400 << 10 // of one item
	MaxCommitBytes = 4 << 20   // of one transaction
	MaxActions     = 100       // of one transaction
	MaxEvents      = 99        // of one transaction, since one action updates the head
)

// MaxEventsBytes is the largest total size of the events of one commit, as the method EventSize of
// a journal counts them. The rest of [MaxCommitBytes] suffices for the head of any aggregate.
const MaxEventsBytes = MaxCommitBytes - 8<<10

// Units of a journal.TooLargeError.
const (
	UnitBytes   = "bytes"
	UnitEvents  = "events"
	UnitActions = "actions"
)

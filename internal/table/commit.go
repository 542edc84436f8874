package table

import (
	"time"
)

// Date returns the dates of a commit. Call it after everything that may take time, such as a read
// or an encoding that waits for a key service: an event must become visible soon after its date.
func (s *Table) Date() Dates { return Dates{time.Now(), s.Now()} }

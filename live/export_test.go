package live

import "time"

// LookAgainEvery has streams begun from now on look again more often.
func (f *Feed) LookAgainEvery(interval time.Duration) { f.lookAgain = interval }

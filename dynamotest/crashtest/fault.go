package crashtest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// ErrFault is the error of a call that fails by [Fleet.Fault].
var ErrFault = errors.New("crashtest: the call fails")

// Fault returns an error with the given chance while a [Fleet.Storm] lasts, and nil otherwise. Call
// names the call, such as "mail of order-1". The n-th Fault of the same call has the same outcome
// in every run with the same seed. A double of another service uses it before and after a call
// takes effect:
//
//	func (p *post) Send(ctx context.Context, key, text string) error {
//		if err := p.fault("request "+key, 0.2); err != nil {
//			return err
//		}
//		p.sent[key] = text
//		return p.fault("reply "+key, 0.2)
//	}
func (f *Fleet[S]) Fault(call string, chance float64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.calls[call]
	f.calls[call]++
	if f.stormy && draw(f.seed, call, n) < chance {
		return fmt.Errorf("%w: %s", ErrFault, call)
	}
	return nil
}

// draw returns a number from 0 to 1 that depends on the arguments only.
func draw(seed uint64, call string, n uint64) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(call))
	return rand.New(rand.NewPCG(seed, h.Sum64()+n)).Float64() //nolint:gosec // not for secrets
}

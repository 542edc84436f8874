package engine

import "context"

// ConfirmClock makes requests until the latest reply does not contradict the known difference of
// the clocks, so that Settings.Now is right if somebody has set this machine's clock. It makes no
// request if the latest reply agrees, and six at most.
func (j *Engine) ConfirmClock(ctx context.Context) error {
	return j.Table.ConfirmClock(ctx, func(ctx context.Context) error {
		_, err := j.ReadDescriptor(ctx)
		return err
	})
}

package subscriber

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

func TestWorldMany(t *testing.T) {
	from, _ := strconv.Atoi(os.Getenv("FROM"))
	to, _ := strconv.Atoi(os.Getenv("TO"))
	if to == 0 {
		t.Skip()
	}
	traced := os.Getenv("TRACE") != ""
	steps := 2000
	if s := os.Getenv("STEPS"); s != "" {
		steps, _ = strconv.Atoi(s)
	}
	n, delivered := 0, 0
	for seed := from; seed < to; seed++ {
		w, failure := runWorld(uint64(seed), steps, traced)
		delivered += w.delivered
		if failure != "" {
			n++
			fmt.Printf("seed %d: %s %+v epoch %d\n", seed, failure, w.kind, w.epoch)
			if traced {
				for _, line := range w.trace {
					fmt.Println(line)
				}
			}
		}
	}
	fmt.Printf("%d of %d fail, %d deliveries\n", n, to-from, delivered)
}

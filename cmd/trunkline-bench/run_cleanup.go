package main

// cleanups are the cleanup functions of a run, called in reverse order.
type cleanups []func()

func (c *cleanups) add(end func()) { *c = append(*c, end) }

func (c *cleanups) run() {
	for i := len(*c) - 1; i >= 0; i-- {
		(*c)[i]()
	}
}

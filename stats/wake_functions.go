package stats

// wakeFunctions has the functions that end the reads of workers which wait for something, by partition. Who
// knows what they wait for has one, under its own lock.
type wakeFunctions map[int]func()

// set sets the function of a partition's worker, and calls it if what the worker waits for is there
// already; nil: the worker waits no longer.
func (w *wakeFunctions) set(partition int, wake func(), isThere bool) {
	if wake == nil {
		delete(*w, partition)
		return
	}

	if *w == nil {
		*w = wakeFunctions{}
	}

	(*w)[partition] = wake
	if isThere {
		wake()
	}
}

// wake ends the read of a partition's worker, if it waits.
func (w wakeFunctions) wake(partition int) {
	wake := w[partition]
	if wake != nil {
		wake()
	}
}

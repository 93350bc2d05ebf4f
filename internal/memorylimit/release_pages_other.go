//go:build !linux

package memorylimit

import "runtime/debug"

// ReleaseStart returns free memory of the heap to the kernel.
func ReleaseStart() error {
	debug.FreeOSMemory()
	return nil
}

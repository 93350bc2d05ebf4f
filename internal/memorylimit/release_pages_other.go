//go:build !linux

package memorylimit

import "runtime/debug"

// ReleaseStartMemory returns free memory of the heap to the kernel.
func ReleaseStartMemory() error {
	debug.FreeOSMemory()
	return nil
}

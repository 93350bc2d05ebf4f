//go:build !linux

package loadtest

import "errors"

type poller struct{}

type ready struct{ slot, visit int32 }

func newPoller() (*poller, error) { return nil, errors.New("subscribers need Linux (epoll)") }

func (p *poller) watch(int, bool, ready) error       { return errors.ErrUnsupported }
func (p *poller) wait(into []ready) ([]ready, error) { return into, errors.ErrUnsupported }
func (p *poller) wake()                              {}
func (p *poller) close()                             {}

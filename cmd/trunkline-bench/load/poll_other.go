//go:build !linux

package load

import "errors"

type poller struct{}

type socketID struct{ slot, connects int32 }

func newPoller() (*poller, error) { return nil, errors.New("subscribers need Linux (epoll)") }

func (p *poller) watch(int, bool, socketID) error         { return errors.ErrUnsupported }
func (p *poller) wait(dst []socketID) ([]socketID, error) { return dst, errors.ErrUnsupported }
func (p *poller) wake()                                   {}
func (p *poller) close()                                  {}

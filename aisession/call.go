package aisession

import (
	"context"
	"time"
)

// Call is a call as the session uses it. Each ingress implements it.
type Call interface {
	// Play sends the next 20 ms of audio to the caller, in the call's format. It must not block or
	// keep frame. It is called every 20 ms.
	Play(frame []byte)
	// SendDTMF sends a digit to the caller. It may block while the digit is sent. The error is fault.KindUnsupported if
	// the ingress cannot.
	SendDTMF(ctx context.Context, digit byte, duration time.Duration) error
	// Transfer transfers the call. After it returns nil, the session no longer controls the call. The error is
	// fault.KindUnsupported if the ingress cannot; the provider is sent the message of any error.
	Transfer(ctx context.Context, destination string) error
	// Release ends the session's use of the call. It is called once, including when the call itself has
	// ended, but not after a transfer.
	Release(Ending)
}

// QueueingCall is a Call whose platform queues the audio that Play gets, and reports what it has played.
type QueueingCall interface {
	Call
	// DropQueued drops the audio that the platform has not played. Functions that wait for it are called. It must
	// not block.
	DropQueued()
	// AfterPlayed calls done when the platform has played the audio so far. It must not block.
	AfterPlayed(done func())
}

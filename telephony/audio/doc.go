// Package audio turns one telephone codec into another, 20 ms at a time:
// formats and the size of their frames, G.711, linear PCM, opus, a resampler,
// loss concealment, and a jitter buffer fed by RTP sequence and timestamp.
//
// It refuses to know about calls, sockets and clocks: who calls Path.Frame
// every 20 ms makes the pace. Samples are mono 16-bit; opus packets of two
// channels are mixed down. Nothing is allocated for a frame once a Path has
// run. No goroutines. What is full: a Jitter keeps at most maxPackets packets
// and drops the oldest.
//
// Opus is behind Decoder and Encoder: only opus.go knows the library, which
// needs no cgo.
//
// A Jitter may be used by two goroutines (who receives, who plays); all else
// belongs to one. There is one lock, the Jitter's.
package audio

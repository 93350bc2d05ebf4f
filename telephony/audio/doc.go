// Package audio converts between telephone codecs in frames of 20 ms. It has formats and their frame
// sizes, G.711, linear PCM, opus, a resampler, loss concealment, and a jitter buffer driven by RTP
// sequence numbers and timestamps.
//
// It has no knowledge of calls, sockets or clocks: the caller of Transcoder.EncodeFrame sets the pace by calling
// it every 20 ms. Samples are mono and 16-bit; stereo opus packets are mixed down. A Transcoder allocates
// nothing per frame once it has processed its first frames. The package starts no goroutines. A
// JitterBuffer holds at most maxPackets packets and drops the oldest above that.
//
// Opus is behind Decoder and Encoder: only opus.go imports the library, which needs no cgo. NewOggOpus makes an
// Ogg file of a WAV file (NewWAV), as fast as it is read.
//
// A JitterBuffer is safe for two goroutines (the receiver and the player) and has the package's only
// lock. All other types are for one goroutine at a time.
package audio

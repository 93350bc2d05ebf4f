// Package audio converts between telephone codecs in frames of 20 ms. It has formats and their frame
// sizes, G.711, linear PCM, opus, a resampler, loss concealment, and a jitter buffer driven by RTP
// timestamps.
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
//
// # Files
//
//   - format.go, codec.go, pcm16.go, opus.go: formats, and the codec of each
//   - transcoder.go, resample.go: from one format to another, frame by frame
//   - jitter_buffer.go, conceal.go: packets in order, and what stands for lost ones
//   - wav.go, ogg_opus.go: files
package audio

package envelope

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"testing"
	"time"
)

// benchSize is a call of four minutes as a telephone's WAV.
const benchSize = 4 << 20

// BenchmarkAgainstBare runs sealing and opening in turn with the bare
// primitives over the same chunks, and reports the ratio of throughput: the
// goals (shared figure R1) are 0.85 for GCM and 0.80 for CBC+HMAC. Taking turns
// keeps a busy machine from favouring either. Sealing and opening are measured
// against primitives that find their input in memory; seekable, which has to
// read it through an io.ReadSeeker, against primitives that read it too.
func BenchmarkAgainstBare(b *testing.B) {
	audio := randomAudio(benchSize)
	for _, suite := range []Suite{AES256GCM, AES256CBC} {
		params := testParams(suite)

		whole := sealAudio(b, audio, params)
		bareSeal, bareOpen, bareRead := barePrimitives(b, suite)
		for _, c := range []struct {
			name       string
			bare, ours func() error
		}{
			{"seal", bareSeal, func() error {
				_, _, err := Seal(io.Discard, bytes.NewReader(audio), params)
				return err
			}},
			{"open", bareOpen, func() error {
				_, _, err := Open(io.Discard, bytes.NewReader(whole), Expected{}, testRootFinder)
				return err
			}},
			{"seekable", bareRead, func() error {
				r, err := NewReader(bytes.NewReader(whole), Expected{}, testRootFinder)
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, r)
				return errors.Join(err, r.Close())
			}},
		} {
			b.Run(suite.String()+"/"+c.name, func(b *testing.B) {
				var bare, ours []time.Duration
				b.ReportAllocs()
				for b.Loop() {
					bare = append(bare, elapsed(b, c.bare))
					ours = append(ours, elapsed(b, c.ours))
				}

				b.ReportMetric(0, "ns/op")
				b.ReportMetric(benchSize/1e6/median(ours).Seconds(), "MB/s")
				b.ReportMetric(median(bare).Seconds()/median(ours).Seconds(), "ratio")
			})
		}
	}
}

func elapsed(b *testing.B, work func() error) time.Duration {
	start := time.Now()
	if err := work(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// barePrimitives returns the suite's ciphers over benchSize bytes in chunks, without a
// format: one pass like sealing, one like opening, and one that opens from a reader.
func barePrimitives(b *testing.B, suite Suite) (seal, open, read func() error) {
	block, err := aes.NewCipher(make([]byte, keySize))
	if err != nil {
		b.Fatal(err)
	}

	// Half a page apart: buffers at the same place of a page would slow the
	// bare loop down for reasons that have nothing to do with the cipher.
	in, out := randomAudio(benchSize), make([]byte, ChunkSize+64+2048)[2048:]
	var sealChunk, openChunk func(chunk []byte) error
	sealedIn, sealedChunk := in, ChunkSize

	if suite == AES256GCM {
		aead, err := cipher.NewGCM(block)
		if err != nil {
			b.Fatal(err)
		}

		nonce := make([]byte, aead.NonceSize())
		sealChunk = func(chunk []byte) error { aead.Seal(out[:0], nonce, chunk, nil); return nil }
		openChunk = func(chunk []byte) error { _, err := aead.Open(out[:0], nonce, chunk, nil); return err }
		sealedIn, sealedChunk = nil, ChunkSize+aead.Overhead()

		for chunk := range chunksOf(in) {
			sealedIn = aead.Seal(sealedIn, nonce, chunk, nil)
		}
	} else {
		iv := make([]byte, blockSize)

		mac := hmac.New(sha256.New, make([]byte, keySize))
		var sum [sha256.Size]byte
		authenticate := func(chunk []byte) {
			mac.Reset()
			mac.Write(chunk)
			mac.Sum(sum[:0])
		}

		sealChunk = func(chunk []byte) error {
			cipher.NewCBCEncrypter(block, iv).CryptBlocks(out[:len(chunk)], chunk)
			authenticate(out[:len(chunk)])
			return nil
		}

		openChunk = func(chunk []byte) error {
			authenticate(chunk)
			cipher.NewCBCDecrypter(block, iv).CryptBlocks(out[:len(chunk)], chunk)
			return nil
		}
	}

	each := func(in []byte, size int, work func([]byte) error) func() error {
		return func() error {
			for chunk := range slices.Chunk(in, size) {
				if err := work(chunk); err != nil {
					return err
				}
			}
			return nil
		}
	}

	buffer := make([]byte, sealedChunk)
	return each(in, ChunkSize, sealChunk), each(sealedIn, sealedChunk, openChunk), func() error {
		src := bytes.NewReader(sealedIn)
		for range len(sealedIn) / sealedChunk {
			if _, err := io.ReadFull(src, buffer); err != nil {
				return err
			}
			if err := openChunk(buffer); err != nil {
				return err
			}
		}

		return nil
	}
}

func BenchmarkNewRoot(b *testing.B) {
	for b.Loop() {
		if _, err := NewRoot(testKey, testSalt, Iterations); err != nil {
			b.Fatal(err)
		}
	}
}

package envelope

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"io"
	"slices"
	"testing"
	"time"
)

const benchSize = 16 << 20

// BenchmarkAgainstBare runs sealing and opening in turn with the bare
// primitives over the same chunks, and reports the ratio of throughput: the
// goals (shared figure R1) are 0.85 for GCM and 0.80 for CBC+HMAC. Taking turns
// keeps a busy machine from favouring either.
func BenchmarkAgainstBare(b *testing.B) {
	audio := noise(benchSize)
	for _, suite := range []Suite{AES256GCM, AES256CBC} {
		params := testParams(suite)
		whole := sealed(b, audio, params)
		bareSeal, bareOpen := barePrimitives(b, suite)
		for _, c := range []struct {
			name       string
			bare, ours func() error
		}{
			{"seal", bareSeal, func() error {
				_, _, err := Seal(io.Discard, bytes.NewReader(audio), params)
				return err
			}},
			{"open", bareOpen, func() error {
				_, _, err := Open(io.Discard, bytes.NewReader(whole), Want{}, testRootOf)
				return err
			}},
			{"seekable", bareOpen, func() error {
				r, err := NewReader(bytes.NewReader(whole), Want{}, testRootOf)
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, r)
				return err
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

// barePrimitives are the suite's ciphers over benchSize bytes in chunks, with
// no format around them: one pass as sealing needs it, one as opening does.
func barePrimitives(b *testing.B, suite Suite) (seal, open func() error) {
	block, err := aes.NewCipher(make([]byte, keySize))
	if err != nil {
		b.Fatal(err)
	}
	// Half a page apart: buffers at the same place of a page would slow the
	// bare loop down for reasons that have nothing to do with the cipher.
	in, out := noise(benchSize), make([]byte, ChunkSize+64+2048)[2048:]
	if suite == AES256GCM {
		aead, err := cipher.NewGCM(block)
		if err != nil {
			b.Fatal(err)
		}
		nonce := make([]byte, aead.NonceSize())
		const sealedChunk = ChunkSize + 16
		whole := make([]byte, 0, benchSize/ChunkSize*sealedChunk)
		for chunk := range chunksOf(in) {
			whole = aead.Seal(whole, nonce, chunk, nil)
		}
		return func() error {
				for chunk := range chunksOf(in) {
					aead.Seal(out[:0], nonce, chunk, nil)
				}
				return nil
			}, func() error {
				for chunk := range slices.Chunk(whole, sealedChunk) {
					if _, err := aead.Open(out[:0], nonce, chunk, nil); err != nil {
						return err
					}
				}
				return nil
			}
	}
	iv := make([]byte, blockSize)
	mac := hmac.New(sha256.New, make([]byte, keySize))
	var sum [sha256.Size]byte
	authenticate := func(chunk []byte) {
		mac.Reset()
		mac.Write(chunk)
		mac.Sum(sum[:0])
	}
	return func() error {
			for chunk := range chunksOf(in) {
				cipher.NewCBCEncrypter(block, iv).CryptBlocks(out[:len(chunk)], chunk)
				authenticate(out[:len(chunk)])
			}
			return nil
		}, func() error {
			for chunk := range chunksOf(in) {
				authenticate(chunk)
				cipher.NewCBCDecrypter(block, iv).CryptBlocks(out[:len(chunk)], chunk)
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

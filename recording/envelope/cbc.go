package envelope

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"hash"
	"slices"
)

// cbcCipher is suite AES256CBC, encrypt-then-MAC: IV (16) ‖ CBC ciphertext of the chunk
// with PKCS #7 padding ‖ HMAC-SHA-256 (32) of chunkAAD ‖ IV ‖ ciphertext. The MAC is
// checked before decryption, so there is no padding oracle.
type cbcCipher struct {
	block cipher.Block
	mac   hash.Hash
	sum   [sha256.Size]byte
}

const (
	blockSize   = aes.BlockSize
	cbcOverhead = blockSize + blockSize + sha256.Size
)

func newCBC(dek *[keySize]byte) (chunkCipher, error) {
	encKey, err := subkey(dek, labelCBC)
	if err != nil {
		return nil, err
	}
	defer clear(encKey[:])

	macKey, err := subkey(dek, labelMAC)
	if err != nil {
		return nil, err
	}
	defer clear(macKey[:])

	block, err := aes.NewCipher(encKey[:])
	if err != nil {
		return nil, fmt.Errorf("AES: %w", err)
	}

	return &cbcCipher{block: block, mac: hmac.New(sha256.New, macKey[:])}, nil
}

func (c *cbcCipher) encrypt(dst, plain []byte, aad *chunkAAD) ([]byte, error) {
	fullBlocksLen := len(plain) - len(plain)%blockSize
	sealed := slices.Grow(dst, len(plain)+cbcOverhead)[:len(dst)+blockSize+fullBlocksLen+blockSize]
	chunk := sealed[len(dst):]
	_, err := rand.Read(chunk[:blockSize])
	if err != nil {
		return nil, fmt.Errorf("generating an IV: %w", err)
	}

	mode := cipher.NewCBCEncrypter(c.block, chunk[:blockSize])
	mode.CryptBlocks(chunk[blockSize:], plain[:fullBlocksLen])

	var last [blockSize]byte
	pad := byte(blockSize - copy(last[:], plain[fullBlocksLen:]))
	for i := blockSize - int(pad); i < blockSize; i++ {
		last[i] = pad
	}

	mode.CryptBlocks(chunk[blockSize+fullBlocksLen:], last[:])
	clear(last[:])
	return append(sealed, c.tag(chunk, aad)...), nil
}

func (c *cbcCipher) decrypt(dst, sealed []byte, aad *chunkAAD) ([]byte, bool) {
	body := sealed[:len(sealed)-sha256.Size]
	if !hmac.Equal(sealed[len(body):], c.tag(body, aad)) {
		return nil, false
	}

	ciphertext := body[blockSize:]
	if len(ciphertext)%blockSize != 0 {
		return nil, false
	}

	out := slices.Grow(dst, len(ciphertext))[:len(dst)+len(ciphertext)]
	plain := out[len(dst):]
	cipher.NewCBCDecrypter(c.block, body[:blockSize]).CryptBlocks(plain, ciphertext)

	// The chunk is authentic, so bad padding is an error of the writer and not an attack.
	// It is refused nevertheless.
	pad := int(plain[len(plain)-1])
	if pad == 0 || pad > blockSize {
		clear(plain)
		return nil, false
	}

	for _, b := range plain[len(plain)-pad:] {
		if int(b) != pad {
			clear(plain)
			return nil, false
		}
	}

	return out[:len(out)-pad], true
}

// tag returns the MAC of a chunk. It is valid until the next call.
func (c *cbcCipher) tag(body []byte, aad *chunkAAD) []byte {
	c.mac.Reset()
	c.mac.Write(aad[:])
	c.mac.Write(body)
	return c.mac.Sum(c.sum[:0])
}

func (c *cbcCipher) overhead() int     { return cbcOverhead }
func (c *cbcCipher) minSealedLen() int { return cbcOverhead }

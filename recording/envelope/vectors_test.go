package envelope

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/cryptotest"
)

var update = flag.Bool("update", false, "rewrite testdata")

// vector is one published recording and everything derived on the way to it.
type vector struct {
	File        string `json:"file"`
	Key         string `json:"key"`
	Salt        string `json:"salt"`
	Suite       byte   `json:"suite"`
	AccountID   string `json:"account_id"`
	RecordingID string `json:"recording_id"`
	ContentType string `json:"content_type"`
	Created     int64  `json:"created"`
	KeyID       string `json:"key_id"`
	KeyVersion  uint32 `json:"key_version"`
	Iterations  uint32 `json:"iterations"`
	AudioLength int    `json:"audio_length"`
	AudioSHA256 string `json:"audio_sha256"`
	S           string `json:"s"`
	Root        string `json:"root"`
	OwnSalt     string `json:"own_salt"`
	DataKey     string `json:"data_key"`
	Commitment  string `json:"commitment"`
	ChunkKey    string `json:"chunk_key"` // GCM key or CBC key
	MACKey      string `json:"mac_key,omitempty"`
	CoreSHA256  string `json:"core_sha256"`
	SealedBytes int    `json:"sealed_length"`
}

type vectorFile struct {
	Audio   string   `json:"audio"`
	Vectors []vector `json:"vectors"`
}

const audioGenerator = "x = (length + 2463534242) mod 2^32; for every byte: x ^= x << 13, x ^= x >> 17, x ^= x << 5 (32 bits), byte = x mod 256"

func makeVector(t *testing.T, file string, whole []byte) vector {
	t.Helper()
	h, root := testHeader(t, whole), testRoot()
	dek, err := h.unwrapKey(&root)
	if err != nil {
		t.Fatal(err)
	}

	label, mac := labelGCM, ""
	if h.Suite == AES256CBC {
		label, mac = labelCBC, hexKey(t, dek, labelMAC)
	}

	var audio bytes.Buffer
	if _, _, err := Open(&audio, bytes.NewReader(whole), Expected{}, testRootFinder); err != nil {
		t.Fatal(err)
	}

	sum, core := sha256.Sum256(audio.Bytes()), h.coreDigest()
	return vector{
		File: file, Key: testKey, Salt: testSalt, Suite: byte(h.Suite), AccountID: h.AccountID,
		RecordingID: h.RecordingID, ContentType: h.ContentType, Created: h.Created.UnixMilli(),
		KeyID: h.KeyID, KeyVersion: h.KeyVersion, Iterations: h.Iterations,
		AudioLength: audio.Len(), AudioSHA256: hex.EncodeToString(sum[:]),
		S: hex.EncodeToString(root.salt[:]), Root: hex.EncodeToString(root.key[:]),
		OwnSalt: hex.EncodeToString(h.Salt[:]), DataKey: hex.EncodeToString(dek[:]),
		Commitment: hexKey(t, dek, labelCommit), ChunkKey: hexKey(t, dek, label), MACKey: mac,
		CoreSHA256: hex.EncodeToString(core[:]), SealedBytes: len(whole),
	}
}

func hexKey(t *testing.T, dek *[keySize]byte, label string) string {
	t.Helper()
	key, err := subkey(dek, label)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(key[:])
}

// TestVectors opens the published recordings and derives their published
// values again. With -update it seals them anew from fixed randomness.
func TestVectors(t *testing.T) {
	list := filepath.Join("testdata", "vectors.json")
	if *update {
		writeVectors(t, list)
	}

	var published vectorFile
	if err := json.Unmarshal(readFile(t, list), &published); err != nil {
		t.Fatal(err)
	}
	if len(published.Vectors) != 6 {
		t.Fatalf("%d vectors", len(published.Vectors))
	}

	for _, want := range published.Vectors {
		whole := readFile(t, filepath.Join("testdata", want.File))
		if got := makeVector(t, want.File, whole); got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", want.File, got, want)
		}

		var audio bytes.Buffer
		if _, _, err := Open(&audio, bytes.NewReader(whole), Expected{}, testRootFinder); err != nil ||
			!bytes.Equal(audio.Bytes(), randomAudio(want.AudioLength)) {
			t.Errorf("%s: %v", want.File, err)
		}
	}
}

func writeVectors(t *testing.T, list string) {
	cryptotest.SetGlobalRandom(t, 1)
	file := vectorFile{Audio: audioGenerator}
	for _, suite := range suites {
		for _, n := range []int{0, 5, ChunkSize + 3} {
			name := fmt.Sprintf("%s-%d.trkrec", strings.ToLower(suite.String()), n)
			whole := sealAudio(t, randomAudio(n), testParams(suite))
			writeFile(t, filepath.Join("testdata", name), whole)
			file.Vectors = append(file.Vectors, makeVector(t, name, whole))
		}
	}

	out, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		t.Fatal(err)
	}

	writeFile(t, list, append(out, '\n'))
}

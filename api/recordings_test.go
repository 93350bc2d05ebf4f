package api

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"trunkline/identity"
	"trunkline/recording"
)

const recordingsPath = "/api/v2/recordings"

// testAudio is audio in which a reader would find words.
func testAudio(n int) string {
	return strings.Repeat("the caller said something private. ", n/35+1)[:n]
}

// recorderHeader is of a recorder that uploads.
func (e *env) recorderHeader() header {
	return header{"X-API-Key": e.key, "Content-Type": "audio/x-wav"}
}

func TestARecordingsLife(t *testing.T) {
	e := newEnv(t)
	admin, key := e.as("admin", "demo"), e.recorderHeader()
	audio := testAudio(200_000)

	for i, sealed := range []bool{false, true} {
		e.ask(200, "PUT", encryptionPath, admin, fmt.Sprintf(`{"enabled":%v}`, sealed), nil)
		id := fmt.Sprintf("call-%d.wav", i)
		one := recordingsPath + "/" + id
		var stored, again recording.Metadata
		e.ask(201, "PUT", one, key, audio, &stored)

		if stored.RecordingID != id || stored.AccountID != "demo" || stored.Encrypted != sealed ||
			stored.Size != 200_000 ||
			stored.ContentType != "audio/x-wav" || sealed != (stored.KeyVersion == 1) ||
			sealed != (stored.StoredSize > stored.Size) {
			t.Errorf("%+v", stored)
		}

		e.ask(409, "PUT", one, key, "another", nil)
		w := e.ask(200, "GET", one, key, "", nil)
		if w.Body.String() != audio || w.Header().Get("Content-Type") != "audio/x-wav" ||
			w.Header().Get("Content-Length") != "200000" {
			t.Errorf("%d bytes, %v", w.Body.Len(), w.Header())
		}

		w = e.ask(200, "HEAD", one, key, "", nil)
		if w.Body.Len() != 0 || w.Header().Get("Content-Length") != "200000" {
			t.Errorf("HEAD: %d bytes, %v", w.Body.Len(), w.Header())
		}

		e.ask(200, "GET", one+"/metadata", key, "", &again)
		if !reflect.DeepEqual(again, stored) {
			t.Errorf("%+v, then %+v", stored, again)
		}

		e.ask(405, "PUT", one+"/metadata", key, audio, nil)
		e.ask(404, "GET", one+"/more/metadata", key, "", nil)
	}

	var page recording.Page
	e.ask(200, "GET", recordingsPath+"?page_size=1", key, "", &page)
	if len(page.Data) != 1 || page.Data[0].RecordingID != "call-1.wav" || page.PageSize != 1 {
		t.Errorf("%+v", page)
	}

	next := page.NextStartKey
	page = recording.Page{}
	e.ask(200, "GET", recordingsPath+"?page_size=1&start_key="+next, key, "", &page)

	if len(page.Data) != 1 || page.Data[0].RecordingID != "call-0.wav" || page.NextStartKey != "" {
		t.Errorf("%+v", page)
	}

	e.ask(204, "DELETE", recordingsPath+"/call-0.wav", key, "", nil)
	for _, method := range []string{"GET", "HEAD", "DELETE"} {
		e.ask(404, method, recordingsPath+"/call-0.wav", key, "", nil)
	}

	e.ask(404, "GET", recordingsPath+"/call-0.wav/metadata", key, "", nil)
}

func TestPartsOfARecording(t *testing.T) {
	e := newEnv(t)
	e.ask(200, "PUT", encryptionPath, e.as("admin", "demo"), `{"enabled":true}`, nil)
	key, one, audio := e.recorderHeader(), recordingsPath+"/call", testAudio(200_000)
	e.ask(201, "PUT", one, key, audio, nil)
	tag := e.ask(200, "HEAD", one, key, "", nil).Header().Get("ETag")

	for asked, want := range map[string]string{
		"bytes=0-0":             audio[:1],
		"bytes=65000-66000":     audio[65000:66001],
		"bytes=199999-":         audio[199999:],
		"bytes=-10":             audio[199990:],
		"bytes=131072-99999999": audio[131072:],
	} {
		w := e.ask(206, "GET", one, withHeader(key, "Range", asked), "", nil)
		if w.Body.String() != want || !strings.HasSuffix(w.Header().Get("Content-Range"), "/200000") {
			t.Errorf("%s: %d bytes, %v", asked, w.Body.Len(), w.Header())
		}
	}

	several := e.ask(206, "GET", one, withHeader(key, "Range", "bytes=0-9,100000-100009"), "", nil)
	if !strings.HasPrefix(several.Header().Get("Content-Type"), "multipart/byteranges") ||
		!strings.Contains(several.Body.String(), audio[100000:100010]) {
		t.Errorf("two ranges: %v %q", several.Header(), several.Body)
	}

	for _, asked := range []string{"bytes=200000-", "bytes=x-y", "bytes=5-1"} {
		w := e.ask(416, "GET", one, withHeader(key, "Range", asked), "", nil)
		if w.Header().Get("Cache-Control") != "no-store" || strings.Contains(w.Body.String(), "private") {
			t.Errorf("%s: %v", asked, w.Header())
		}
	}

	e.ask(304, "GET", one, withHeader(key, "If-None-Match", tag), "", nil)
	e.ask(412, "GET", one, withHeader(key, "If-Match", `"another"`), "", nil)
	changed := withHeader(withHeader(key, "Range", "bytes=0-9"), "If-Range", `"another"`)
	e.ask(200, "GET", one, changed, "", nil)
	e.ask(206, "GET", one, withHeader(changed, "If-Range", tag), "", nil)
}

func TestWhoMayHaveRecordings(t *testing.T) {
	e := newEnv(t)
	admin, alice, key := e.as("admin", "demo"), e.as("alice", "demo"), header{"X-API-Key": e.key}
	e.ask(201, "PUT", recordingsPath+"/call", key, "audio", nil)
	basic := httptest.NewRequest("GET", "/", nil)
	basic.SetBasicAuth("anyone", e.key)

	for _, c := range []struct {
		name   string
		h      header
		status int
	}{
		{"nobody", nil, 401},
		{"a wrong key", header{"X-API-Key": "tk_wrong"}, 401},
		{"a token without the account", bearer(e.loginUser("admin").AccessToken), 400},
		{"no administrator", alice, 403},
		{"a channel token", withHeader(bearer(e.eventsToken("admin")), "X-Account-ID", "demo"), 403},
		{"an account beside", withHeader(key, "X-Account-ID", "stranger"), 404},
		{"an account that is not", withHeader(admin, "X-Account-ID", "nowhere"), 404},
		{"a key", key, 200},
		{"a key that names its account", withHeader(key, "X-Account-ID", "demo"), 200},
		{"a key as password", header{"Authorization": basic.Header.Get("Authorization")}, 200},
		{"an administrator", admin, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			e.t = t
			for _, path := range []string{"", "/call", "/call/metadata"} {
				e.ask(c.status, "GET", recordingsPath+path, c.h, "", nil)
			}

			if c.status != 200 {
				e.ask(c.status, "PUT", recordingsPath+"/more", c.h, "audio", nil)
				e.ask(c.status, "DELETE", recordingsPath+"/call", c.h, "", nil)
			}
		})
	}

	e.t = t
	// Recording ids are unique per account; a key can access the accounts below its own,
	// not those above.
	sub := withHeader(key, "X-Account-ID", "sub")
	e.ask(404, "GET", recordingsPath+"/call", sub, "", nil)
	e.ask(201, "PUT", recordingsPath+"/call", sub, "of sub", nil)

	if w := e.ask(200, "GET", recordingsPath+"/call", key, "", nil); w.Body.String() != "audio" {
		t.Errorf("%q", w.Body)
	}

	below, _, err := e.identity.Directory.CreateAPIKey(t.Context(),
		identity.NewAPIKey{Account: "sub", Scopes: []identity.Scope{identity.ScopeRecordings}})
	must(t, err)

	if w := e.ask(200, "GET", recordingsPath+"/call", header{"X-API-Key": below}, "",
		nil); w.Body.String() != "of sub" {
		t.Errorf("%q", w.Body)
	}

	e.ask(404, "GET", recordingsPath+"/call", header{"X-API-Key": below, "X-Account-ID": "demo"}, "", nil)
}

func TestRefusedRecordings(t *testing.T) {
	e := newEnv(t)
	key := e.recorderHeader()
	for _, id := range []string{".hidden", "a%2Fb", "a%20b", "%00", "%ff", "..%2f..%2fmaster.key",
		strings.Repeat("x", 129), "caf%C3%A9"} {
		e.ask(400, "PUT", recordingsPath+"/"+id, key, "audio", nil)
		for _, method := range []string{"GET", "DELETE"} {
			e.ask(404, method, recordingsPath+"/"+id, key, "", nil)
		}
	}

	e.ask(400, "PUT", recordingsPath+"/a", withHeader(key, "Content-Type", "audio/"+strings.Repeat("x", 200)), "audio",
		nil)
	e.ask(400, "PUT", recordingsPath+"/a", withHeader(key, "Content-Range", "bytes 0-4/10"), "audio", nil)
	e.ask(415, "PUT", recordingsPath+"/a", withHeader(key, "Content-Encoding", "gzip"), "audio", nil)
	e.ask(413, "PUT", recordingsPath+"/a", key, strings.Repeat("x", maxRecording+1), nil)
	e.ask(404, "PUT", recordingsPath+"/a/b", key, "audio", nil)

	for _, query := range []string{"page_size=0", "page_size=-1", "page_size=1001", "page_size=x", "start_key=x",
		"start_key=%00"} {
		e.ask(400, "GET", recordingsPath+"?"+query, key, "", nil)
	}

	r := httptest.NewRequest("PUT", recordingsPath+"/broken",
		io.MultiReader(strings.NewReader(testAudio(100_000)), iotest.ErrReader(io.ErrUnexpectedEOF)))
	r.Header.Set("X-API-Key", e.key)
	w := httptest.NewRecorder()
	e.api.ServeHTTP(w, r)

	if w.Code != 400 {
		t.Errorf("a body that broke off: %d %s", w.Code, w.Body)
	}
	if left, err := filepath.Glob(filepath.Join(e.recordingsDir, "*", "*")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// An altered recording is not played.
func TestADamagedRecordingIsBrokenOff(t *testing.T) {
	e := newEnv(t)
	key, one := e.recorderHeader(), recordingsPath+"/call"
	e.ask(200, "PUT", encryptionPath, e.as("admin", "demo"), `{"enabled":true}`, nil)
	e.ask(201, "PUT", one, key, testAudio(300_000), nil)
	files, err := filepath.Glob(filepath.Join(e.recordingsDir, "demo", "*.trkrec"))
	must(t, err)
	sealed, err := os.ReadFile(files[0])
	must(t, err)

	if bytes.Contains(sealed, []byte("private")) {
		t.Error("the object can be read")
	}

	rewrite := func(change func(b []byte) []byte) {
		must(t, os.WriteFile(files[0], change(bytes.Clone(sealed)), 0o600))
	}
	rewrite(func(b []byte) []byte { return b[:len(b)-100] })
	e.ask(500, "GET", one, key, "", nil)

	// Damage in the middle: the response begins, and is aborted before it.
	rewrite(func(b []byte) []byte { b[150_000] ^= 1; return b })
	server := httptest.NewServer(e.api)
	defer server.Close()

	for _, part := range []string{"bytes=0-65535", "bytes=131072-", "bytes=0-"} {
		r, err := http.NewRequest("GET", server.URL+one, nil)
		must(t, err)
		r.Header.Set("X-API-Key", e.key)
		r.Header.Set("Range", part)
		answer, err := server.Client().Do(r)
		must(t, err)
		got, err := io.ReadAll(answer.Body)
		must(t, answer.Body.Close())
		from := 0

		if part == "bytes=131072-" {
			from = 131072
		}
		if whole := part == "bytes=0-65535"; whole != (err == nil) ||
			!strings.HasPrefix(testAudio(300_000)[from:], string(got)) || from+len(got) > 131072 {
			t.Errorf("%s: %d bytes, %v", part, len(got), err)
		}
	}
}

// What should be sealed and cannot be is not stored.
func TestARecordingThatCannotBeSealedIsRefused(t *testing.T) {
	e := newEnv(t)
	e.ask(200, "PUT", encryptionPath, e.as("admin", "demo"), `{"enabled":true}`, nil)
	_, err := e.db.ExecContext(t.Context(), `UPDATE encryption_keys SET sealed = 'mk1.lost.AAAA'`)
	must(t, err)
	w := e.ask(503, "PUT", recordingsPath+"/call", e.recorderHeader(), "audio", nil)
	if w.Header().Get("Retry-After") == "" || e.counterValue("trunkline_recording_refused_total") != 1 {
		t.Errorf("%v, counted %v", w.Header(), e.counterValue("trunkline_recording_refused_total"))
	}

	e.ask(404, "GET", recordingsPath+"/call", e.recorderHeader(), "", nil)
	if left, err := filepath.Glob(filepath.Join(e.recordingsDir, "*", "*")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A recording in WAV is downloaded as Ogg Opus, which is encoded while it is sent; each download is audited.
func TestARecordingIsDownloadedAsOpus(t *testing.T) {
	e := newEnv(t)
	key, pcm := e.recorderHeader(), make([]byte, 2*2*8000*3)
	for i := range len(pcm) / 4 {
		binary.LittleEndian.PutUint16(pcm[4*i:], uint16(int16(8000*math.Sin(float64(i)/3))))
	}

	wav := append([]byte(
		"RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00\x40\x1f\x00\x00\x00\x7d\x00\x00\x04\x00\x10\x00data\xff\xff\xff\xff"),
		pcm...)
	e.ask(201, "PUT", recordingsPath+"/call", withHeader(key, "Content-Type", "audio/wav"), string(wav), nil)
	e.ask(201, "PUT", recordingsPath+"/text", key, "not audio", nil)

	w := e.ask(200, "GET", recordingsPath+"/call?format=opus", key, "", nil)
	opus := w.Body.Bytes()
	if w.Header().Get("Content-Type") != "audio/ogg" || !bytes.HasPrefix(opus, []byte("OggS")) || len(opus) < 2000 ||
		len(opus) > len(wav)/3 {
		t.Errorf("%v, %d bytes of %d", w.Header(), len(opus), len(wav))
	}

	w = e.ask(200, "HEAD", recordingsPath+"/call?format=opus", key, "", nil)
	if w.Body.Len() > 0 || w.Header().Get("Content-Type") != "audio/ogg" {
		t.Errorf("%v, %d bytes", w.Header(), w.Body.Len())
	}

	e.ask(201, "PUT", recordingsPath+"/opus", withHeader(key, "Content-Type", "audio/ogg"), string(opus), nil)
	w = e.ask(200, "GET", recordingsPath+"/opus?format=opus", key, "", nil)
	if !bytes.Equal(w.Body.Bytes(), opus) {
		t.Error("Opus is encoded again")
	}

	e.ask(415, "GET", recordingsPath+"/text?format=opus", key, "", nil)
	e.ask(400, "GET", recordingsPath+"/call?format=mp3", key, "", nil)
	e.ask(404, "GET", recordingsPath+"/none?format=opus", key, "", nil)
}

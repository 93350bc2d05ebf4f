package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestBurstOfCallRecords posts the legs of a thousand calls that end at the same time, as
// mod_json_cdr does: each on its own connection, with the same key.
func TestBurstOfCallRecords(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]
	legs := 2000

	if raceDetector { // most of the work is handshakes
		legs = 400
	}

	leg, _, _ := strings.Cut(readFile(t, "../format/freeswitch/testdata/freeswitch.json_cdr/simple.in.jsonl"), "\n")
	const uuid = "55961ebe-6e81-492a-92dd-6a94d6c73929"
	if !strings.Contains(leg, uuid) {
		t.Fatal("the captured leg is another one")
	}

	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
	defer transport.CloseIdleConnections()

	client := &http.Client{Transport: transport}
	var refused atomic.Int64
	var all sync.WaitGroup
	start := make(chan struct{})

	for number := range legs {
		all.Go(func() {
			<-start
			body := strings.ReplaceAll(leg, uuid, fmt.Sprintf("%08x-0000-4000-8000-000000000000", number))
			post := func() (*http.Response, error) {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
					n.url+"/api/v2/ingest/freeswitch.json_cdr?uuid=a", strings.NewReader(body))
				if err != nil {
					return nil, err
				}

				request.SetBasicAuth("freeswitch", c.key)
				request.Header.Set("Content-Type", typeJSON)
				return client.Do(request)
			}

			// On a busy machine handshakes take longer than the server's timeout for a request,
			// and it closes the connection. mod_json_cdr also retries.
			response, err := post()
			for began := time.Now(); err != nil && time.Since(began) < patience; response, err = post() {
				time.Sleep(50 * time.Millisecond)
			}

			if err != nil {
				t.Error(err)
				return
			}

			answer, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if response.StatusCode != http.StatusAccepted && refused.Add(1) < 5 {
				t.Errorf("leg %d: %d %s", number, response.StatusCode, answer)
			}
		})
	}

	close(start)
	all.Wait()
	if refused.Load() != 0 {
		t.Fatalf("%d of %d legs were refused", refused.Load(), legs)
	}

	opened := c.kafka(t)
	eventually(t, "a row for every leg", func() error {
		calls := map[string]bool{} // a retried leg may have two records
		for _, record := range readTopic(t, opened, "cdr") {
			var row struct {
				ID string `json:"call_id"`
			}
			if err := json.Unmarshal(record.Value, &row); err != nil {
				return err
			}

			calls[row.ID] = true
		}

		if len(calls) != legs {
			return fmt.Errorf("%d calls of %d", len(calls), legs)
		}

		return nil
	})
}

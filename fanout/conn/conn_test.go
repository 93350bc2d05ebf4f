package conn

import (
	"bytes"
	"crypto/tls"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A peer that does not read makes Send report that the socket is full, Wait
// returns once it reads, and it gets every byte once and in order.
func TestConnNeverWaitsInSend(t *testing.T) {
	payload := make([]byte, 24<<20) // far more than socket buffers hold
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(payload)

	for _, secure := range []bool{false, true} {
		full, sent := make(chan struct{}), make(chan error, 1)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			hijacked, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				sent <- err
				return
			}

			c, err := New(hijacked)
			if err != nil {
				sent <- err
				return
			}
			defer func() { _ = c.Close() }()

			first, rest := true, payload
			for len(rest) > 0 || c.Spilled() > 0 {
				n, isFull, err := c.Send(rest[:min(len(rest), WriteBytes)])
				rest = rest[n:]
				if err == nil && isFull {
					if first {
						close(full)
						first = false
						if secure != (c.Spilled() > 0) {
							t.Errorf("secure %v: %d bytes are kept", secure, c.Spilled())
						}
					}

					n, err = c.Wait(rest[:min(len(rest), WriteBytes)])
					rest = rest[n:]
				}
				if err != nil {
					sent <- err
					return
				}
			}

			sent <- nil
		}))

		server.Listener = NewListener(server.Listener)
		if secure {
			server.StartTLS()
		} else {
			server.Start()
		}

		var client net.Conn
		var err error
		if secure {
			config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			config.ServerName = "example.com"
			client, err = tls.Dial("tcp", server.Listener.Addr().String(), config)
		} else {
			client, err = net.Dial("tcp", server.Listener.Addr().String())
		}

		if err != nil {
			t.Fatal(err)
		}

		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}

		<-full
		got := make([]byte, len(payload))
		if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, payload) {
			t.Errorf("secure %v: the peer got other bytes, or not all: %v", secure, err)
		}
		if err := <-sent; err != nil {
			t.Errorf("secure %v: %v", secure, err)
		}

		_ = client.Close()
		server.Close()
	}
}

func TestNewRefusesOtherConnections(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hijacked, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = hijacked.Close() }()

		if _, err := New(hijacked); err != ErrListener {
			t.Errorf("got %v", err)
		}
	}))
	defer server.Close()

	if response, err := http.Get(server.URL); err == nil {
		_ = response.Body.Close()
	}
}

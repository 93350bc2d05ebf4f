package cli

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxResponseBytes bounds a response body; a page of 1,000 call records is
// smaller.
const MaxResponseBytes = 4 << 20

// HTTPError is a response with an unexpected status.
type HTTPError struct {
	Status     int
	Body       string        // its first 4 KiB
	RetryAfter time.Duration // 0: the header is absent
}

func (e *HTTPError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s %s", e.Status, http.StatusText(e.Status), Printable(e.Body)))
}

// Fetch sends the request and returns the response's body. A status other than
// want is an *HTTPError.
func Fetch(client *http.Client, request *http.Request, want int) ([]byte, error) {
	_, body, err := FetchWithHeader(client, request, want)
	return body, err
}

// FetchWithHeader is Fetch, and returns the response's header too.
func FetchWithHeader(client *http.Client, request *http.Request, want int) (http.Header, []byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxResponseBytes))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the response: %w", err)
	}
	if response.StatusCode == want {
		return response.Header, body, nil
	}
	seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16) // absent: 0
	return nil, nil, &HTTPError{response.StatusCode, string(body[:min(len(body), 4<<10)]), time.Duration(seconds) * time.Second}
}

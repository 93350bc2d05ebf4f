package cli

import (
	"bytes"
	"context"
	"encoding/json"
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
	response, err := Send(client, request, want)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()

	body, err := readBody(response)
	if err != nil {
		return nil, nil, err
	}

	return response.Header, body, nil
}

// PostJSON sends body as JSON in a POST request and returns the response's body. A
// status other than 200 is an *HTTPError.
func PostJSON(ctx context.Context, client *http.Client, url string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}

	request.Header.Set("Content-Type", "application/json")
	return Fetch(client, request, http.StatusOK)
}

// Send sends the request and returns the response, whose body the caller closes.
// A status other than want is an *HTTPError.
func Send(client *http.Client, request *http.Request, want int) (*http.Response, error) {
	response, err := client.Do(request)
	if err != nil || response.StatusCode == want {
		return response, err
	}
	defer response.Body.Close()

	body, err := readBody(response)
	if err != nil {
		return nil, err
	}

	seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16) // absent: 0
	return nil, &HTTPError{response.StatusCode, string(body[:min(len(body), 4<<10)]),
		time.Duration(seconds) * time.Second}
}

func readBody(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxResponseBytes))
	if err != nil {
		return nil, fmt.Errorf("reading the response: %w", err)
	}
	return body, nil
}

package channelclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// login obtains a token with the configured filters.
func (c *Client) login(ctx context.Context) (token string, err error) {
	body, err := json.Marshal(struct {
		Username string `json:"username"`
		Password string `json:"password"`
		Domain   string `json:"domain"`
		Filter
	}{c.cfg.Username, c.cfg.Password, c.cfg.Domain, c.cfg.Filter})
	if err != nil {
		return "", fmt.Errorf("writing the login: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+c.cfg.Paths.login(), bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("making the login: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return "", fmt.Errorf("logging in: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", newRefusal("login", response)
	}
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer); err != nil {
		return "", fmt.Errorf("reading the login's answer: %w", err)
	}
	if answer.AccessToken == "" {
		return "", fmt.Errorf("reading the login's answer: there is no access_token in it")
	}
	return answer.AccessToken, nil
}

// maxAnswer bounds an HTTP response body in bytes.
const maxAnswer = 1 << 20

// refusal is an HTTP response with an error status.
type refusal struct {
	step    string // "login" or "upgrade"
	status  int
	message string        // the server's, may be ""
	after   time.Duration // Retry-After, 0: none
}

func newRefusal(doing string, response *http.Response) *refusal {
	r := &refusal{step: doing, status: response.StatusCode}
	var body struct {
		Message string `json:"message"`
	}
	// A proxy's page is no JSON: then the status has to do.
	if text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err == nil && json.Unmarshal(text, &body) == nil {
		r.message = body.Message
	}
	if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16); err == nil {
		r.after = time.Duration(seconds) * time.Second
	}
	return r
}

func (r *refusal) Error() string {
	text := fmt.Sprintf("%s refused: %d %s", r.step, r.status, http.StatusText(r.status))
	if r.message != "" {
		text += ": " + r.message
	}
	return text
}

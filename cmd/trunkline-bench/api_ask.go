package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"trunkline/internal/cli"
	"trunkline/internal/loadtest/requests"
)

const (
	encryptionPath = "/api/v2/config/call_recording_encryption"
	callPath       = "/ucp/v2/c2c/1002" // an extension that the simulator answers
)

// simulated is the prefix of the ids of simulated calls.
const simulated = "sim-"

// operation returns the request with the given name.
func (r *apiRun) operation(name string) func(ctx context.Context, n uint64) (int, error) {
	account := func(n uint64) string { return r.accounts.ids[n%uint64(len(r.accounts.ids))] }
	switch name {
	case askLogin:
		body, _ := json.Marshal(r.accounts.credentials()) // strings always marshal
		return func(ctx context.Context, _ uint64) (int, error) {
			return r.ask(ctx, http.MethodPost, portalLogin, "", "", body, http.StatusOK, holds(`"access_token":"`))
		}
	case askToken:
		return func(ctx context.Context, _ uint64) (int, error) {
			return r.ask(ctx, http.MethodGet, channelPath+"/stats", r.token, "", nil, http.StatusOK, holds(`"total_connections":`))
		}
	case askEncryption:
		return func(ctx context.Context, n uint64) (int, error) {
			return r.ask(ctx, http.MethodGet, encryptionPath, r.token, account(n), nil, http.StatusOK, holds(`"success":true`))
		}
	case changeEncryption:
		body := []byte(`{"enabled":true}`)
		return func(ctx context.Context, n uint64) (int, error) {
			return r.ask(ctx, http.MethodPut, encryptionPath, r.token, account(n), body, http.StatusOK, holds(`"key_version":1`))
		}
	case placeCall:
		return func(ctx context.Context, n uint64) (int, error) {
			caller := r.callers[n%uint64(len(r.callers))]
			return r.ask(ctx, http.MethodPost, callPath, caller, "", nil, http.StatusCreated, simulatedOnly)
		}
	case lookUp:
		return func(ctx context.Context, n uint64) (int, error) {
			call := r.calls[n%uint64(len(r.calls))]
			request, err := newLookup(ctx, r.url, r.token, call.account, call.origination, call.at)
			if err != nil {
				return 0, err
			}
			return r.answer(request, http.StatusOK, holds(call.origination))
		}
	default: // askReport
		return func(ctx context.Context, n uint64) (int, error) {
			request, err := newReport(ctx, r.url, r.token, account(n), time.Now().Add(-24*time.Hour), 50)
			if err != nil {
				return 0, err
			}
			return r.answer(request, http.StatusOK, holds(`"data":[`))
		}
	}
}

// holds returns a check that the response contains a text.
func holds(text string) func([]byte) error {
	want := []byte(text)
	return func(body []byte) error {
		if !bytes.Contains(body, want) {
			return fmt.Errorf("the answer does not hold %s", text)
		}
		return nil
	}
}

func simulatedOnly(body []byte) error {
	if !bytes.Contains(body, []byte(`"origination_call_id":"`+simulated)) {
		return fmt.Errorf("the call is not on the simulator: the server's origination.driver must be simulator, or auto")
	}
	return nil
}

func (r *apiRun) ask(ctx context.Context, method, path, token, account string, body []byte, want int, check func([]byte) error) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, r.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if account != "" {
		request.Header.Set("X-Account-ID", account)
	}
	return r.answer(request, want, check)
}

// answer sends the request and returns an error for any response but the expected one.
func (r *apiRun) answer(request *http.Request, want int, check func([]byte) error) (status int, err error) {
	response, err := r.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, fmt.Errorf("reading the answer: %w", err)
	}
	if response.StatusCode != want {
		return response.StatusCode, &requests.Unexpected{Status: response.StatusCode, Text: messageOf(body)}
	}
	if err := check(body); err != nil {
		return response.StatusCode, &requests.Unexpected{Status: response.StatusCode, Text: err.Error()}
	}
	return response.StatusCode, nil
}

// messageOf returns the message of an error response.
func messageOf(body []byte) string {
	var e struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &e) == nil && e.Message != "" {
		return cli.Printable(e.Message)
	}
	return cli.Printable(strings.TrimSpace(string(body[:min(len(body), 200)])))
}

// newReport returns a request for a page of the account's call records.
func newReport(ctx context.Context, base, token, account string, since time.Time, size int) (*http.Request, error) {
	query := url.Values{
		"startDate": {strconv.FormatInt(since.Unix(), 10)}, "endDate": {strconv.FormatInt(time.Now().Unix(), 10)},
		"page_size": {strconv.Itoa(size)},
	}
	return newReportRequest(ctx, base, token, account, query)
}

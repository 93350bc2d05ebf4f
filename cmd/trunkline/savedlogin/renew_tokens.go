package savedlogin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"trunkline/cmd/internal/cli"
)

// renewBefore is the time before its expiry at which an access token is renewed.
const renewBefore = time.Minute

// renewTimeout is the timeout of a renewal. An interrupt does not cancel it.
const renewTimeout = 15 * time.Second

// tokens is the response of the logins and of a refresh.
type tokens struct {
	User struct {
		AccountID string `json:"account_id"`
	} `json:"user"`
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
}

// AccessToken returns an access token of the REST API that is valid for at least another minute. It
// renews the saved one if necessary.
func (s *Session) AccessToken(ctx context.Context) (string, error) {
	if hasValidToken(s.login) {
		return s.login.AccessToken, nil
	}

	err := s.file.update(func(l *login) error {
		// A refresh token can be used once: a second use ends the session.
		if hasValidToken(*l) { // another command has renewed it
			s.login = *l
			return nil
		}

		// Once the server has used up the refresh token, the new tokens must be saved.
		renewCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTimeout)
		defer cancel()

		t, err := requestTokens(renewCtx, s.client, l.URL+"/ucp/v2/login/refresh",
			map[string]string{"refresh_token": l.RefreshToken})
		var status *cli.HTTPError
		if errors.As(err, &status) && status.Status == http.StatusUnauthorized {
			return cli.Usagef("the login has ended: run trunkline login again")
		}
		if err != nil {
			return fmt.Errorf("renewing the login: %w", err)
		}

		l.setTokens(t, time.Now())
		s.login = *l
		return nil
	})

	return s.login.AccessToken, err
}

func hasValidToken(l login) bool { return time.Until(time.Unix(l.ExpiresAt, 0)) > renewBefore }

// requestTokens posts a login or a refresh.
func requestTokens(ctx context.Context, client *http.Client, url string, body any) (t tokens, err error) {
	answer, err := cli.PostJSON(ctx, client, url, body)
	if err != nil {
		return t, err
	}
	err = json.Unmarshal(answer, &t)
	if err != nil || t.AccessToken == "" || t.RefreshToken == "" {
		return t, errors.New("the response has no tokens: is it a Trunkline server?")
	}
	return t, nil
}

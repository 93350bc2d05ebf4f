package main

import (
	"context"
	"net/http"

	"trunkline/cmd/trunkline-bench/load"
)

// groups returns the subscribers as groups with a token each: one group per account, or one for
// all accounts.
func (b *fanoutBench) groups(ctx context.Context, client *http.Client, a *benchAccounts) ([]load.Group, error) {
	if b.everyAccount {
		token, err := b.channelLogin(ctx, client, a, a.ids)
		return []load.Group{{Token: token, Sockets: b.subscribers, Streams: len(a.ids)}}, err
	}
	return b.splitSubscribers(len(a.ids),
		func(i int) (string, error) { return b.channelLogin(ctx, client, a, a.ids[i:i+1]) })
}

// splitSubscribers divides the subscribers among the accounts and logs in for each account.
func (b *fanoutBench) splitSubscribers(accounts int, token func(account int) (string, error)) ([]load.Group, error) {
	var groups []load.Group
	for i := range accounts {
		token, err := token(i)
		if err != nil {
			return nil, err
		}

		sockets := b.subscribers / accounts
		if i < b.subscribers%accounts {
			sockets++
		}

		groups = append(groups, load.Group{Token: token, Sockets: sockets, First: i, Streams: 1})
	}

	return groups, nil
}

// channelLogin obtains a token for the accounts.
func (b *fanoutBench) channelLogin(ctx context.Context, client *http.Client, a *benchAccounts,
	ids []string) (string, error) {
	granted, err := login(ctx, client, b.url+channelPath+"/login", credentials{
		Username: a.username, Password: a.password, Domain: a.domain, AccountIDs: ids,
	})
	return granted.AccessToken, err
}

#!/bin/sh
# Creates the secrets at the first run, and starts deploy/compose.yaml.
# usage: deploy/compose/up.sh [ARGUMENTS OF docker compose up]
set -eu
cd "$(dirname "$0")"

# Containers read these files as different users, so the files are readable for
# all; the folder is not.
mkdir -p secrets
chmod 700 secrets
keep() { # keep NAME: writes stdin to the secret unless it exists
	if [ -s "secrets/$1" ]; then cat >/dev/null; else cat >"secrets/$1.new" && chmod 644 "secrets/$1.new" && mv "secrets/$1.new" "secrets/$1"; fi
}
word() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

word | keep redis_password
word | keep postgres_password
word | keep grafana_password
word | keep admin_password
head -c 32 /dev/urandom | base64 | keep master_key
printf 'postgres://trunkline:%s@postgres:5432/trunkline?sslmode=disable\n' "$(cat secrets/postgres_password)" | keep database_url
keep directory.yaml <<END
accounts:
  - {id: main, name: Main, domain: main.example}
users:
  - {account: main, username: admin, password: "$(cat secrets/admin_password)", role: admin}
END
if [ ! -s secrets/tls.pem ]; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 825 -subj /CN=localhost \
		-addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' -keyout secrets/tls.key -out secrets/tls.crt 2>/dev/null
	cat secrets/tls.crt secrets/tls.key | keep tls.pem
fi

docker compose --file ../compose.yaml ${COMPOSE_OVERRIDE:+--file "$COMPOSE_OVERRIDE"} up --detach --wait "$@"
cat <<END

Trunkline   https://localhost:9443/      admin of main.example, password in deploy/compose/secrets/admin_password
Grafana     http://localhost:3000/       admin, password in deploy/compose/secrets/grafana_password
Prometheus  http://localhost:9090/
certificate deploy/compose/secrets/tls.crt is self-signed: put your own chain and key into tls.pem
END

# A stand-in for tests at http://localhost:4010, with a vault in memory. docs/containers.md describes its options:
#   docker build --tag coffer-local .
#   docker run --publish 127.0.0.1:4010:4010 coffer-local
# fixtures/deploy/compose.yaml runs the same image over PostgreSQL.
# No step installs a package that package-lock.json does not name, and none runs a script of a package.

FROM node:22-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build && npm pack --ignore-scripts && mkdir /coffer && tar -xzf coffer-*.tgz -C /coffer --strip-components=1
RUN cp package-lock.json /coffer/ && npm ci --ignore-scripts --omit=dev --prefix /coffer

# Node of Alpine shares its libraries with the system, and so takes half the space. util-linux and setpriv confine reactor code.
FROM alpine:3.22
RUN apk add --no-cache nodejs util-linux-misc setpriv && adduser -D -u 1000 coffer
COPY --from=build /coffer /opt/coffer
RUN ln -s /opt/coffer/bin/coffer.js /usr/local/bin/coffer
COPY --from=build /build/fixtures/deploy/entrypoint.sh /usr/local/bin/coffer-entrypoint
# Seeds of tests are mounted here.
RUN mkdir /seeds
USER coffer
WORKDIR /home/coffer
EXPOSE 4010
HEALTHCHECK --interval=2s --timeout=3s --start-period=10s \
  CMD ["wget", "-q", "-O", "/dev/null", "http://127.0.0.1:4010/readyz"]
ENTRYPOINT ["/usr/local/bin/coffer-entrypoint"]
CMD []

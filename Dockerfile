# Build: everything, compiled.
FROM node:20-bookworm-slim AS build
WORKDIR /app
# better-sqlite3 is compiled here when its maker has no binary for this platform.
RUN apt-get update && apt-get install -y --no-install-recommends python3 make g++ && rm -rf /var/lib/apt/lists/*
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN npm run build && npm prune --omit=dev

# Run: compiled code and its dependencies alone, as a user who owns nothing.
FROM node:20-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
RUN mkdir /data && chown node:node /data
USER node
# The API, and OPERATIONS_PORT where it is set to this.
EXPOSE 4000 9464
CMD ["node", "dist/main.js"]

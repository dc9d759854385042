import { renderEnvExample } from '../platform/env-example';

process.stdout.write(renderEnvExample());

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { withMetricList } from '../operations/metrics-doc';

const file = path.join(__dirname, '../../docs/operations.md');
writeFileSync(file, withMetricList(readFileSync(file, 'utf8')));

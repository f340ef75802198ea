// Writes grafana.json, from which Grafana imports the dashboard:
//
//     npm install @grafana/grafana-foundation-sdk@0.0.21 && node dashboard.mjs >grafana.json

import * as dashboard from '@grafana/grafana-foundation-sdk/dashboard';
import * as prometheus from '@grafana/grafana-foundation-sdk/prometheus';
import * as table from '@grafana/grafana-foundation-sdk/table';
import * as timeseries from '@grafana/grafana-foundation-sdk/timeseries';

const source = { type: 'prometheus', uid: '${source}' };
const where = 'instance=~"$instance", object=~"$object"';

const query = (expr, legend) => new prometheus.DataqueryBuilder().expr(expr).legendFormat(legend);

const panel = (title, unit, expr, legend, what) =>
  new timeseries.PanelBuilder()
    .title(title)
    .description(what)
    .datasource(source)
    .unit(unit)
    .min(0)
    .span(12)
    .height(8)
    // With one run a night, a change is a step, not a slope.
    .lineInterpolation('stepAfter')
    .withTarget(query(expr, legend));

const value = (probe, metric) => `pg_io_probe_value{probe="${probe}", metric="${metric}", ${where}}`;

const variable = (name, label) =>
  new dashboard.QueryVariableBuilder(name)
    .label(label)
    .datasource(source)
    .query(`label_values(pg_io_probe_value, ${name})`)
    .includeAll(true)
    .allValue('.*')
    .multi(true)
    .refresh(dashboard.VariableRefresh.OnTimeRangeChanged);

const built = new dashboard.DashboardBuilder('Storage by pg_io_probe')
  .uid('pg-io-probe')
  .tags(['postgresql', 'storage'])
  .description('What io_probe_record has stored, by monitoring/postgres_exporter.yml')
  .time({ from: 'now-30d', to: 'now' })
  .refresh('5m')
  .withVariable(new dashboard.DatasourceVariableBuilder('source').label('Prometheus').type('prometheus'))
  .withVariable(variable('instance', 'Server'))
  .withVariable(variable('object', 'Object'))
  .withRow(new dashboard.RowBuilder('Changes'))
  .withPanel(
    panel('Worse than the noise', 'short', `pg_io_probe_change_worse{${where}} == 1`, '{{probe}} {{object}} {{item}} {{metric}}',
      'Figures of the last run that are worse than those before by more than they differ anyway. Empty is good.'))
  .withPanel(
    panel('Age of the last run', 's', `min by (instance, machine, probe, object) (pg_io_probe_age_seconds{${where}})`, '{{machine}} {{probe}} {{object}}',
      'How long ago each probe ran'))
  .withRow(new dashboard.RowBuilder('Reads'))
  .withPanel(panel('Scans', 'MiBs', value('seqscan', 'mib_s'), '{{object}} {{item}}', 'io_probe_seqscan'))
  .withPanel(panel('Random reads', 'iops', value('random', 'iops'), '{{object}} {{item}}', 'io_probe_random'))
  .withPanel(panel('Reads by requests in flight', 'iops', value('depth', 'iops'), '{{object}} {{item}}', 'io_probe_depth'))
  .withPanel(panel('99th percentile of random reads', 'µs', value('random', 'p99_us'), '{{object}} {{item}}', 'io_probe_random'))
  .withRow(new dashboard.RowBuilder('Writes'))
  .withPanel(panel('Time of a flush', 'µs', `1e6 / ${value('sync', 'ops_s')}`, '{{object}} {{item}}', 'io_probe_sync'))
  .withPanel(panel('99th percentile of flushes', 'µs', value('sync', 'p99_us'), '{{object}} {{item}}', 'io_probe_sync'))
  .withPanel(
    new table.PanelBuilder()
      .title('All figures')
      .datasource(source)
      .span(24)
      .height(10)
      .withTarget(query(`pg_io_probe_value{${where}}`, '').format(prometheus.PromQueryFormat.Table).instant()))
  .build();

console.log(JSON.stringify(built, null, 2));

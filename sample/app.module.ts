import { Module, type DynamicModule } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { RatchetModule } from 'nestjs-ratchet';
import { InvoiceFiles } from './invoices/invoice-files.js';
import { InvoiceHandler } from './invoices/invoice.handler.js';
import { TaxService } from './invoices/tax-service.js';
import { OrderDay } from './orders/order-day.js';
import { OrderDesk } from './orders/order-desk.js';
import { OrderImport } from './orders/order-import.js';
import { Order } from './orders/order.entity.js';
import { InvoiceJobReader } from './report/invoice-job-reader.js';
import { Progress } from './report/progress.js';
import { Summary } from './report/summary.js';
import { Terminal } from './report/terminal.js';
import { SampleOptions } from './sample-options.js';
import { ENGINE_SCHEMA } from './schemas.js';

@Module({})
export class AppModule {
  static for(databaseUrl: string, options: SampleOptions): DynamicModule {
    return {
      module: AppModule,
      imports: [
        TypeOrmModule.forRoot({ type: 'postgres', url: databaseUrl, entities: [Order], synchronize: true }),
        TypeOrmModule.forFeature([Order]),
        RatchetModule.forRoot({
          dataSource: 'default',
          schema: ENGINE_SCHEMA,
          // A fixed id: what this process was doing when it was killed comes back as soon as it starts again.
          nodeId: 'sample',
          concurrency: 5,
          // You are invited to kill it. A job that is running each time would count as the culprit after the third.
          maxCrashRedeliveries: 100,
          // The table at the end is read from the history.
          retention: { history: '365d', executions: '365d', deadLetter: '365d' },
        }),
      ],
      providers: [
        { provide: SampleOptions, useValue: options },
        OrderDay,
        OrderDesk,
        OrderImport,
        InvoiceHandler,
        InvoiceFiles,
        TaxService,
        InvoiceJobReader,
        Progress,
        Summary,
        Terminal,
      ],
    };
  }
}
